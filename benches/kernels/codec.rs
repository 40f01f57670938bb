//! Compares libdeflate and zlib-rs on payloads of real blobs: prints compressed sizes, then measures speed with
//! criterion. `notes/codec.md` has the results and the decisions based on them.
//!
//! `PBFHOGG_BENCH_FILE` names the file with the payloads; without it, a synthetic file is made.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress};
use pbfhogg::Context;
use pbfhogg::OutputOptions;
use pbfhogg::commands::synth;
use pbfhogg::unstable::file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds};
use pbfhogg::unstable::pbf::{BlobKind, Compression, Compressor};
use std::path::{Path, PathBuf};

/// At most 60 payloads of a file, spread evenly over it.
fn payloads(path: &Path) -> Vec<Vec<u8>> {
    let ctx = Context::default();
    let file = PbfFile::open(path, &ctx).unwrap();
    let blobs = BlobPlan::open(&file, PlanNeeds::Frames, &ctx).unwrap();
    let blobs = blobs.entries;
    let mut reader = BlobDecoder::new(&file.input, &ctx);
    let step = blobs.len().div_ceil(60);
    blobs
        .iter()
        .step_by(step)
        .map(|entry| reader.payload(entry).unwrap().to_vec())
        .collect()
}

fn sample() -> Vec<Vec<u8>> {
    if let Some(path) = std::env::var_os("PBFHOGG_BENCH_FILE") {
        return payloads(&PathBuf::from(path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("world.osm.pbf");
    let options = synth::Options::new(500_000, OutputOptions::file(path.clone()));
    synth::run(&options, &Context::default()).unwrap();
    payloads(&path)
}

fn deflate_libdeflate(payloads: &[Vec<u8>], level: i32) -> Vec<Vec<u8>> {
    let mut zlib = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(level).unwrap());
    let compress = |payload: &Vec<u8>| {
        let mut out = vec![0; zlib.zlib_compress_bound(payload.len())];
        let len = zlib.zlib_compress(payload, &mut out).unwrap();
        out.truncate(len);
        out
    };
    payloads.iter().map(compress).collect()
}

fn deflate_zlib_rs(payloads: &[Vec<u8>], level: u32) -> Vec<Vec<u8>> {
    let compress = |payload: &Vec<u8>| {
        let mut zlib = Compress::new(flate2::Compression::new(level), true);
        let mut out = Vec::with_capacity(payload.len() + 1024);
        zlib.compress_vec(payload, &mut out, FlushCompress::Finish)
            .unwrap();
        out
    };
    payloads.iter().map(compress).collect()
}

fn total(parts: &[Vec<u8>]) -> usize {
    parts.iter().map(Vec::len).sum()
}

fn codecs(criterion: &mut Criterion) {
    let payloads = sample();
    let raw = total(&payloads);
    println!(
        "{} payloads, {raw} bytes; size of the compressed data against zlib-rs level 6:",
        payloads.len()
    );
    let reference = total(&deflate_zlib_rs(&payloads, 6)) as f64;
    for level in 1..=9 {
        println!(
            "  zlib-rs {level}: {:.4}",
            total(&deflate_zlib_rs(&payloads, level)) as f64 / reference
        );
    }
    for level in 1..=12 {
        println!(
            "  libdeflate {level}: {:.4}",
            total(&deflate_libdeflate(&payloads, level)) as f64 / reference
        );
    }
    let mut group = criterion.benchmark_group("inflate");
    group
        .throughput(Throughput::Bytes(raw as u64))
        .sample_size(10);
    let stored = deflate_zlib_rs(&payloads, 6);
    let mut out = vec![0; payloads.iter().map(Vec::len).max().unwrap_or(0)];
    group.bench_function("libdeflate", |bencher| {
        let mut zlib = libdeflater::Decompressor::new();
        bencher.iter(|| {
            for (stored, payload) in stored.iter().zip(&payloads) {
                zlib.zlib_decompress(stored, &mut out[..payload.len()])
                    .unwrap();
            }
        });
    });
    group.bench_function("zlib-rs", |bencher| {
        bencher.iter(|| {
            for (stored, payload) in stored.iter().zip(&payloads) {
                let mut zlib = Decompress::new(true);
                zlib.decompress(stored, &mut out[..payload.len()], FlushDecompress::Finish)
                    .unwrap();
            }
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("deflate");
    group
        .throughput(Throughput::Bytes(raw as u64))
        .sample_size(10);
    for level in [1, 2, 3, 4, 5, 6, 7, 8] {
        group.bench_function(format!("libdeflate {level}"), |bencher| {
            bencher.iter(|| deflate_libdeflate(&payloads, level))
        });
    }
    for level in [1, 3, 6] {
        group.bench_function(format!("zlib-rs {level}"), |bencher| {
            bencher.iter(|| deflate_zlib_rs(&payloads, level))
        });
    }
    for compression in [Compression::Zlib(6), Compression::Zstd(3), Compression::Lz4] {
        group.bench_function(
            format!("as the program does it: {compression}"),
            |bencher| {
                let mut compressor = Compressor::new(compression);
                let mut frame = Vec::new();
                bencher.iter(|| {
                    for payload in &payloads {
                        frame.clear();
                        compressor
                            .frame(BlobKind::Data, None, payload, &mut frame)
                            .unwrap();
                    }
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, codecs);
criterion_main!(benches);
