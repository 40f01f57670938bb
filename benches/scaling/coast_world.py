#!/usr/bin/env python3
"""Writes a world of coastlines as OPL: coast_world.py NODES | pbfhogg cat -F opl - -o world.osm.pbf

Islands of all sizes, the largest with a tenth of the nodes. Half of them have a lake with an island. A way has 50 nodes,
as on the planet.
"""

import math
import sys

WAY = 50


def ring(lon, lat, radius, count, is_lake):
    step = -1 if is_lake else 1
    for index in range(count):
        angle = step * math.tau * index / count
        waves = sum(math.sin(angle * 5**level + level) / 4**level for level in range(1, 7))
        distance = radius * (0.7 + 0.3 * waves)
        yield lon + distance * math.cos(angle), lat + 0.6 * distance * math.sin(angle)


def islands(nodes):
    number, left = 0, nodes
    while left > 0:
        count = max(60, int(nodes / 10 / (1 + number) ** 0.9))
        column, row = number % 70, number // 70
        lon, lat = -174 + 5 * column, -54 + 5 * (row % 25)
        turn = row // 25
        radius = 2.2 / (1 + turn) ** 0.5 if turn == 0 else 0.001
        lon += 0.01 * (turn % 200) - 1
        lat += 0.01 * (turn // 200) + (2.35 if turn else 0)
        yield from [(lon, lat, radius, count, False)]
        if number % 2 == 0 and turn == 0:
            yield from [(lon, lat, radius / 4, count // 4, True), (lon, lat, radius / 16, count // 16, False)]
        left -= count
        number += 1


def main(nodes):
    write, node, ways = sys.stdout.write, 0, []
    for lon, lat, radius, count, is_lake in islands(nodes):
        if count < 4:
            continue
        first = node + 1
        for x, y in ring(lon, lat, radius, count, is_lake):
            node += 1
            write(f"n{node} v1 x{x:.7f} y{y:.7f}\n")
        ways.append((first, node))
    way = 0
    for first, last in ways:
        for start in range(first, last, WAY):
            ids = [*range(start, min(start + WAY, last) + 1)]
            if ids[-1] == last:
                ids.append(first)
            way += 1
            write(f"w{way} v1 Tnatural=coastline N{','.join(f'n{one}' for one in ids)}\n")


main(int(sys.argv[1]))
