#!/usr/bin/env python3
"""Measures `regions` by both ways: regions_world.py PBFHOGG WORLD.osm.pbf DAY.osc.gz DIRECTORY [REGIONS]

The regions are nested: the whole, its quarters, and boxes around nodes that are drawn at random, so that most are
towns. Two servers are made of the file. One is brought forward with the planet by `--changes`; of the other one, the
planet is brought forward by `apply-changes`, and all regions are cut out. Prints seconds of cpu, peak memory and bytes
written, and compares the extracts of both. DIRECTORY needs room for seven times the file.
"""

import filecmp
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path


def boxes(pbfhogg, world, count):
    box = subprocess.run([pbfhogg, "inspect", "-g", "data.bbox", world], capture_output=True, text=True, check=True)
    west, south, east, north = (float(side) for side in box.stdout.strip("()\n").split(","))
    middle = ((west + east) / 2, (south + north) / 2)
    yield west, south, east, north
    for x in (west, middle[0]), (middle[0], east):
        for y in (south, middle[1]), (middle[1], north):
            yield x[0], y[0], x[1], y[1]
    # Every node has the same chance to be drawn.
    drawn = random.Random(1)
    nodes = subprocess.run([pbfhogg, "inspect", "-g", "data.count.nodes", world], capture_output=True, check=True)
    wanted = set(drawn.sample(range(int(nodes.stdout)), count - 5))
    text = [pbfhogg, "cat", "-q", "-t", "node", "-f", "opl", world, "-o", "-"]
    lines = subprocess.Popen(text, stdout=subprocess.PIPE).stdout
    for line in (line for number, line in enumerate(lines) if number in wanted):
        fields = {word[:1]: word[1:] for word in line.split()}
        x, y = float(fields[b"x"]), float(fields[b"y"])
        side = 0.005 * 2 ** drawn.uniform(0, 3)
        yield x - side, y - side, x + side, y + side


def measured(*arguments):
    """Runs a program, and prints what it took."""
    child = subprocess.Popen(["/usr/bin/time", "-f", "%U %S %e %M %O", *arguments], stderr=subprocess.PIPE, text=True)
    report = child.communicate()[1]
    if child.returncode:
        sys.exit(report)
    user, system, wall, peak, blocks = report.split("\n")[-2].split()
    return {
        "cpu s": round(float(user) + float(system), 2),
        "wall s": float(wall),
        "peak MB": int(peak) // 1000,
        "written MB": int(blocks) * 512 // 1000000,
    }


def main(pbfhogg, world, day, directory, count=200):
    directory = Path(directory)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    planets = [directory / name for name in ("followed.osm.pbf", "cut.osm.pbf")]
    subprocess.run([pbfhogg, "cat", "-q", world, "-o", planets[0]], check=True)
    shutil.copy(planets[0], planets[1])
    extracts = [
        {"output": f"r{number:03}.osm.pbf", "bbox": box}
        for number, box in enumerate(boxes(pbfhogg, planets[0], int(count)))
    ]
    config = directory / "regions.json"
    config.write_text(json.dumps({"extracts": extracts}))
    servers = [directory / name for name in ("followed", "cut")]
    run = [pbfhogg, "regions", "-q", "-c", config]
    print("first", measured(*run, planets[0], "-d", servers[0]))
    shutil.copytree(servers[0], servers[1])
    print("followed", measured(*run, planets[0], "--changes", day, "-d", servers[0]))
    print("planet", measured(pbfhogg, "apply-changes", "-q", "--overwrite", planets[1], day, "-o", planets[1]))
    print("cut", measured(*run, planets[1], "-d", servers[1]))
    for extract in extracts:
        pair = [server / extract["output"] for server in servers]
        if filecmp.cmp(*pair, shallow=False):
            continue
        compared = subprocess.run([pbfhogg, "diff", "-q", "-s", *pair], capture_output=True, text=True)
        if compared.returncode:
            sys.exit(f"{pair[0]} differs: {compared.stdout}")
    sizes = [sum((server / extract["output"]).stat().st_size for extract in extracts) for server in servers]
    print("extracts MB", *(size // 1000000 for size in sizes))


if __name__ == "__main__":
    main(*sys.argv[1:])
