#!/usr/bin/env python3
"""Draws the seconds for each GB and the memory of jobs over the size of the file.

    benches/large/plot.py reference/plots/growth.svg < benches/large/growth.txt

Reads a table in Markdown from standard input: a column of jobs, then one for each file. The heading of a file begins
with its size in GB (`25.5 GB, cold`); a cell has the seconds and the memory in MB (`93.6, 1,075`), or nothing.
"""

import math
import sys

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 440, 300, 52, 30, 40
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]


def read_table(lines):
    """Returns for each job the points (size, seconds, MB)."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    sizes = [float(heading.split()[0]) for heading in rows[0][1:]]
    jobs = {}
    for name, *cells in rows[2:]:
        figures = [(size, cell.split(", ")) for size, cell in zip(sizes, cells) if ", " in cell]
        points = [(size, float(seconds), float(mb.replace(",", ""))) for size, (seconds, mb) in figures]
        if len(points) > 1:
            jobs[name.replace("`", "")] = points
    return jobs


def text(x, y, words, anchor="middle", size=12):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


class Panel:
    """A chart with logarithmic axes."""

    def __init__(self, title, left, curves, ticks):
        self.title, self.left, self.curves, self.ticks = title, left, curves, ticks
        self.sizes = sorted({size for points in curves.values() for size, _ in points})

    def x(self, size):
        low, high = math.log(self.sizes[0]), math.log(self.sizes[-1])
        return self.left + LEFT + 10 + (math.log(size) - low) / (high - low) * (WIDTH - LEFT - 50)

    def y(self, value):
        low, high = math.log(self.ticks[0]), math.log(self.ticks[-1])
        return HEIGHT - BOTTOM - (math.log(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def draw(self):
        right = self.left + WIDTH - 30
        yield text(self.left + LEFT, 18, self.title, "start", 14)
        for tick in self.ticks:
            y = self.y(tick)
            yield f'<line x1="{self.left + LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            yield text(self.left + LEFT - 6, y + 4, f"{tick:,g}", "end")
        for size in self.sizes:
            yield text(self.x(size), HEIGHT - BOTTOM + 18, f"{size:g} GB")
        for colour, points in zip(COLOURS, self.curves.values()):
            places = [(self.x(size), self.y(value)) for size, value in points]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            for x, y in places:
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def main(path):
    jobs = read_table(sys.stdin)
    rates = {name: [(size, seconds / size) for size, seconds, _ in points] for name, points in jobs.items()}
    memory = {name: [(size, mb) for size, _, mb in points] for name, points in jobs.items()}
    panels = [
        Panel("seconds for each GB", 0, rates, [1, 2, 5, 10, 20, 50]),
        Panel("memory, MB", WIDTH, memory, [10, 100, 1000, 10000]),
    ]
    height = HEIGHT + 18 * math.ceil(len(jobs) / 2)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for panel in panels:
        out += panel.draw()
    for number, (colour, name) in enumerate(zip(COLOURS, jobs)):
        x, y = LEFT + number % 2 * WIDTH, HEIGHT + number // 2 * 18
        out.append(f'<rect x="{x}" y="{y - 9}" width="12" height="12" fill="{colour}"/>')
        out.append(text(x + 18, y + 1, name, "start"))
    with open(path, "w") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


main(*sys.argv[1:])
