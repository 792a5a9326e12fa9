from __future__ import annotations

import subprocess
import sys

import drawstring


def test_every_public_name_is_there():
    assert drawstring.__all__ == sorted(drawstring.__all__)
    for name in drawstring.__all__:
        assert getattr(drawstring, name) is not None
    assert set(dir(drawstring)) >= set(drawstring.__all__)


def test_the_core_works_without_spark():
    code = (
        "import sys, drawstring, drawstring.table; drawstring.col('a') > 1; drawstring.WriteOptions;"
        "assert not any(name.split('.')[0] in ('pyspark', 'py4j') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_nothing_else():
    code = "import sys, drawstring; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
