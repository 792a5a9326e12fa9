package org.apache.spark

import com.esotericsoftware.kryo.Kryo
import org.apache.spark.serializer.KryoRegistrator

/**
 * The registrator that Hudi's guide has people put into `spark.kryo.registrator`.
 *
 * drawstring sends nothing through Kryo that needs a serializer of its own; the class exists so that existing
 * configurations keep working.
 */
class HoodieSparkKryoRegistrar extends KryoRegistrator {
  override def registerClasses(kryo: Kryo): Unit = ()
}
