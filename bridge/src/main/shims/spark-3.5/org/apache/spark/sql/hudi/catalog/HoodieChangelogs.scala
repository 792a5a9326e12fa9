package org.apache.spark.sql.hudi.catalog

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}

/** The CHANGES clause, which this Spark does not have. */
private[sql] trait HoodieChangelogs extends TableCatalog {
  protected def hoodieEntry(ident: Identifier): Option[CatalogTable]
}
