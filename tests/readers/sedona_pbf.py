"""Counts the objects of PBF files with Apache Sedona: sedona_pbf.py NAME FILE.osm.pbf..."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
# Small parts, so that a file of a few megabytes is read in many.
spark.conf.set("spark.sql.files.maxPartitionBytes", 1 << 20)
spark.conf.set("spark.sql.files.openCostInBytes", 1 << 18)
for file in sys.argv[2:]:
    kinds = spark.read.format("osmpbf").load(file).groupBy("kind").count().collect()
    counts = {row["kind"]: row["count"] for row in kinds}
    names = {"node": "nodes", "way": "ways", "relation": "relations"}
    found = " ".join(f"{name}={counts.get(kind, 0)}" for kind, name in names.items())
    print(sys.argv[1], file, found, flush=True)
