"""Sessions with drawstring in them: `session`, `configure` for an own builder, `attach` for a running one."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drawstring.errors import BridgeError
from drawstring.spark.errors import install_error_conversion
from drawstring.spark.session.package import package_parent, package_zip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
CATALOG = "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
USE_V2 = "hoodie.datasource.read.use.dsv2"
_USE_V2_KEYS = tuple(
    prefix + key for key in (USE_V2, "hoodie.datasource.read.use.v2") for prefix in ("", "spark.")
)
_BRIDGE_CLASS = "drawstring.bridge.Bridge"
_planners: dict[
    int, Any
] = {}  # Py4J calls back into these objects: they must outlive the call that made them


def session(
    app_name: str = "drawstring", *, master: str | None = None, conf: Mapping[str, Any] | None = None
) -> SparkSession:
    """Start (or get) a Spark session that reads and writes Hudi tables.

    It has drawstring's catalog and extension, reads through DataSource V2 (`hoodie.datasource.read.use.dsv2=true`)
    and is attached to the planner. `conf` wins over these settings.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    late = {key: value for key, value in (conf or {}).items() if not key.startswith("spark.")}
    for key, value in (conf or {}).items():
        if key not in late:
            builder = builder.config(key, value)
    spark: SparkSession = configure(builder).getOrCreate()
    for key, value in {**late, USE_V2: _use_v2(conf or {}) or spark.conf.get(USE_V2)}.items():
        spark.conf.set(key, value)
    return spark


def configure(builder: Any) -> Any:
    """Put drawstring's settings on a `SparkSession.builder`; its `getOrCreate` also attaches the planner.

    Settings that the builder carries already, or gets later, are kept; lists (jars, extensions) are extended.
    """
    for name in ("getOrCreate", "create"):
        start = getattr(builder, name, None)
        if start is not None and not hasattr(start, "_drawstring"):
            setattr(builder, name, _attaching(builder, start))
    return builder


def attach(spark: SparkSession) -> SparkSession:
    """Connect a running session to the planner, so that `format("hudi")` works in it.

    The jar reaches the driver's class loader and the executors. What Spark reads once, at start, cannot be added
    afterwards: the session extension (without it SQL time travel by instant and the V1 fallback of catalog tables
    are missing) and, once a table was looked up, `spark_catalog`. Use `session` or `configure` to have those.
    """
    jvm = _jvm(spark)
    _load_bridge(spark, jvm)
    _ship_package(spark)
    _connect(spark, jvm)
    install_error_conversion()
    return spark


def _attaching(builder: Any, start: Any) -> Any:
    @functools.wraps(start)
    def get_or_create() -> Any:
        jar = _bridge_jar()
        settings = _settings(builder._options, jar)
        for key, value in settings.items():
            builder.config(key, value)
        use_v2 = _use_v2(builder._options)
        _add_to_running_jvm(jar)
        try:
            started = start()
        except Exception as error:
            _explain_missing_java(error)
            raise
        spark = attach(started)
        # Not a Spark property: spark-submit would warn that it ignores it.
        spark.conf.set(USE_V2, use_v2 or spark.conf.get(f"spark.{USE_V2}", None) or "true")
        return spark

    get_or_create._drawstring = True  # type: ignore[attr-defined]
    return get_or_create


def _explain_missing_java(error: Exception) -> None:
    """PySpark says of a missing Java only that its gateway process exited."""
    from pyspark import SparkContext

    from drawstring.spark.session.build import java_executable

    if SparkContext._jvm is None:
        try:
            java_executable()
        except BridgeError as missing:
            raise missing from error


def _bridge_jar() -> str:
    # Imported late, so that `python -m drawstring.spark.session.build` does not find itself imported already.
    from drawstring.spark.session.build import bridge_jar

    return str(bridge_jar())


def _settings(given: Mapping[str, Any], jar: str) -> dict[str, str]:
    """Drawstring's settings beside those already given."""
    defaults = {
        "spark.sql.catalog.spark_catalog": CATALOG,
        "spark.pyspark.python": os.environ.get("PYSPARK_PYTHON", sys.executable),
        # Newer Spark asks a scan for its row count only then.
        "spark.sql.cbo.planStats.enabled": "true",
    }
    settings = {key: value for key, value in defaults.items() if key not in given}
    settings["spark.jars"] = _with(given.get("spark.jars"), jar)
    settings["spark.sql.extensions"] = _with(given.get("spark.sql.extensions"), EXTENSION)
    return settings


def _use_v2(settings: Mapping[str, Any]) -> str | None:
    """The switch for V2 reads under any of its names, the usual one first; None when nothing sets it."""
    given = [settings[key] for key in _USE_V2_KEYS if key in settings]
    return str(given[0]).lower() if given else None


def _with(listed: Any, item: str) -> str:
    items = [part.strip() for part in str(listed or "").split(",") if part.strip()]
    return ",".join(items if item in items else [*items, item])


def _add_to_running_jvm(jar: str) -> None:
    """A JVM that an earlier session left behind ignores `spark.jars`: hand the jar to its class loader."""
    from pyspark import SparkContext

    if SparkContext._jvm is not None:
        _add_url(SparkContext._jvm, jar)


def _jvm(spark: SparkSession) -> Any:
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise BridgeError(
            "drawstring needs a classic Spark session, and this one has no JVM beside it (Spark Connect). Start the "
            "server's session with drawstring instead.",
            condition="SPARK_CONNECT_UNSUPPORTED",
        )
    return jvm


def _load_bridge(spark: SparkSession, jvm: Any) -> None:
    if _is_loaded(jvm):
        return
    jar = _bridge_jar()
    _add_url(jvm, jar)
    spark.sparkContext._jsc.addJar(jar)
    if not _is_loaded(jvm):
        raise BridgeError(
            f"The bridge jar {jar} could not be added to the running JVM. Start the session with "
            "drawstring.session(), or put the jar into spark.jars.",
            condition="BRIDGE_NOT_LOADED",
            jar=jar,
        )


def _is_loaded(jvm: Any) -> bool:
    from py4j.protocol import Py4JError

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_BRIDGE_CLASS)
    except Py4JError:
        return False
    return True


def _add_url(jvm: Any, jar: str) -> None:
    """Add a jar to Spark's own mutable class loader, the first on the way up from the thread's."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    url = jvm.java.io.File(jar).toURI().toURL()
    while loader is not None:
        if loader.getClass().getName().endswith("MutableURLClassLoader"):
            loader.addURL(url)
            return
        loader = loader.getParent()


def _ship_package(spark: SparkSession) -> None:
    """Tell executors where drawstring is: this machine's path in local mode, a zip of the package elsewhere."""
    context = spark.sparkContext
    environment = {"package_path": str(package_parent()), "package_zip": "", "python": sys.executable}
    environment["python"] = context._conf.get("spark.pyspark.python") or context.pythonExec or sys.executable
    # PySpark's own workers, which writes run in, start what an environment variable says, else "python3".
    context.pythonExec = environment["python"]
    if not context.master.startswith("local"):
        archive = package_zip()
        environment["package_zip"] = Path(archive).name
        if str(archive) not in getattr(context, "_python_includes", []):
            context.addPyFile(str(archive))
    workers = _jvm(spark).drawstring.bridge.WorkerSettings
    workers.set(environment["python"], environment["package_path"], environment["package_zip"])
    if context.master.startswith("local"):
        workers.warm(min(4, 2 * context.defaultParallelism))


def _require_secret(gateway: Any) -> None:
    """Let the callback server take calls from the JVM only.

    PySpark protects calls to the JVM with a secret, but takes calls back from anybody on this machine: Py4J's client
    loses the secret when it learns the server's port. It is given back here; both ends look at it when a
    connection is made.
    """
    from py4j.java_gateway import JavaObject

    secret = gateway.gateway_parameters.auth_token
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    kind = client.getClass()
    while kind.getName() != "py4j.CallbackClient":
        kind = kind.getSuperclass()
    token = kind.getDeclaredField("authToken")
    token.setAccessible(True)
    token.set(client, secret)
    gateway.callback_server_parameters.auth_token = secret


def _connect(spark: SparkSession, jvm: Any) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    from drawstring.spark.planner import SparkPlanner

    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    _require_secret(gateway)
    planner = _planners.setdefault(id(gateway), SparkPlanner())
    planner.spark = spark
    jvm.drawstring.bridge.Bridge.attach(planner)
