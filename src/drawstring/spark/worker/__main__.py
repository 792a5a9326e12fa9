"""`python -m drawstring.spark.worker`: what the bridge starts beside an executor."""

from drawstring.spark.worker.server import main

if __name__ == "__main__":
    main()
