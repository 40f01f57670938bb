//! A slow reader of Shapefiles, by the specification of 1998.

use std::path::Path;

/// A shape: its type, its parts, and the values of its row, each with the name of the column.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub shape_type: i32,
    pub parts: Vec<Vec<[f64; 2]>>,
    pub values: Vec<(String, String)>,
}

fn big(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn little(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn float(bytes: &[u8], at: usize) -> f64 {
    f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Reads the Shapefile whose name ends in `.shp`, and checks that its files agree.
pub fn shapes(path: &Path) -> Vec<Shape> {
    let read = |ending: &str| std::fs::read(path.with_extension(ending)).unwrap();
    let (shp, shx, rows) = (read("shp"), read("shx"), rows(&read("dbf")));
    assert_eq!(read("cpg"), b"UTF-8");
    for file in [&shp, &shx] {
        assert_eq!((big(file, 0), little(file, 28)), (9994, 1000));
        assert_eq!(2 * big(file, 24), file.len());
        assert_eq!(file[32..68], shp[32..68]);
    }
    let (mut at, mut found) = (100, Vec::new());
    let mut edges = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    while at < shp.len() {
        let (number, len) = (big(&shp, at), 2 * big(&shp, at + 4));
        assert_eq!(number, found.len() + 1);
        let entry = 100 + 8 * found.len();
        assert_eq!((2 * big(&shx, entry), 2 * big(&shx, entry + 4)), (at, len));
        let content = &shp[at + 8..at + 8 + len];
        let (parts, points) = (little(content, 36), little(content, 40));
        assert_eq!(len, 44 + 4 * parts + 16 * points);
        let starts = (0..parts).map(|part| little(content, 44 + 4 * part));
        let starts: Vec<usize> = starts.chain([points]).collect();
        let first = 44 + 4 * parts;
        let point = |index: usize| {
            [
                float(content, first + 16 * index),
                float(content, first + 16 * index + 8),
            ]
        };
        let parts: Vec<Vec<_>> = starts
            .windows(2)
            .map(|ends| (ends[0]..ends[1]).map(point).collect())
            .collect();
        for (side, edge) in edges.iter_mut().enumerate() {
            let values = parts.iter().flatten().map(|point| point[side % 2]);
            let own = float(content, 4 + 8 * side);
            let (exact, all) = if side < 2 {
                (values.fold(f64::INFINITY, f64::min), edge.min(own))
            } else {
                (values.fold(f64::NEG_INFINITY, f64::max), edge.max(own))
            };
            assert_eq!(own, exact);
            *edge = all;
        }
        found.push(Shape {
            shape_type: little(content, 0) as i32,
            parts,
            values: rows[found.len()].clone(),
        });
        at += 8 + len;
    }
    assert_eq!(
        (found.len(), shx.len()),
        (rows.len(), 100 + 8 * found.len())
    );
    if !found.is_empty() {
        let header: Vec<f64> = (0..4).map(|side| float(&shp, 36 + 8 * side)).collect();
        assert_eq!(header, edges);
    }
    found
}

/// The rows of a table in dBASE III.
fn rows(dbf: &[u8]) -> Vec<Vec<(String, String)>> {
    let short = |at: usize| usize::from(u16::from_le_bytes([dbf[at], dbf[at + 1]]));
    let (count, header, width) = (little(dbf, 4), short(8), short(10));
    assert_eq!((dbf[0], dbf[header - 1]), (3, b'\r'));
    assert_eq!(dbf.len(), header + count * width + 1);
    let columns: Vec<(String, usize)> = dbf[32..header - 1]
        .chunks(32)
        .map(|column| {
            let name = column[..11].iter().take_while(|byte| **byte != 0);
            (
                String::from_utf8(name.copied().collect()).unwrap(),
                usize::from(column[16]),
            )
        })
        .collect();
    let row = |bytes: &[u8]| {
        let mut at = 1;
        let mut values = Vec::new();
        for (name, len) in &columns {
            let text = std::str::from_utf8(&bytes[at..at + len]).unwrap();
            values.push((name.clone(), text.trim().to_owned()));
            at += len;
        }
        values
    };
    dbf[header..dbf.len() - 1].chunks(width).map(row).collect()
}

/// Twice the area within a ring that repeats its first point: positive if it is counter-clockwise.
pub fn doubled_area(ring: &[[f64; 2]]) -> f64 {
    // Relative to the first point, so that products stay small.
    let [x, y] = ring[0];
    ring.windows(2)
        .map(|ends| (ends[0][0] - x) * (ends[1][1] - y) - (ends[1][0] - x) * (ends[0][1] - y))
        .sum()
}
