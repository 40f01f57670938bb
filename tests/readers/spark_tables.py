"""Opens a directory of tables by its root with Spark and with Apache Sedona, and prints what they find as JSON: the
number of rows for Spark, and for Sedona the number of features by type, the box and the sum of areas.

spark_tables.py DIRECTORY
"""

import json
import sys

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.appName("tables")
    .config("spark.sql.extensions", "org.apache.sedona.sql.SedonaSqlExtensions")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.kryo.registrator", "org.apache.sedona.core.serde.SedonaKryoRegistrator")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
rows = spark.read.parquet(sys.argv[1])
found = {"rows": rows.count(), "columns": rows.columns}
if "geometry" in rows.columns:
    found["geometry"] = rows.schema["geometry"].dataType.simpleString()
    spark.read.format("geoparquet").load(sys.argv[1]).createOrReplaceTempView("features")
    types = spark.sql("SELECT ST_GeometryType(geometry) AS type, count(*) AS count FROM features GROUP BY type")
    found["types"] = {row["type"]: row["count"] for row in types.collect()}
    found |= spark.sql(
        """
        SELECT min(ST_XMin(geometry)) AS west, min(ST_YMin(geometry)) AS south,
               max(ST_XMax(geometry)) AS east, max(ST_YMax(geometry)) AS north, sum(ST_Area(geometry)) AS area
        FROM features
        """
    ).first().asDict()
print(json.dumps(found))
