//! Measures inner loops separately: varints, scanning node, way and relation blocks, decoding objects, building string
//! tables and blocks, and parsing change files. (`codec` measures compression and decompression.)

mod sample;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pbfhogg::Context;
use pbfhogg::unstable::formats::read_change_files;
use pbfhogg::unstable::pbf::wire::{Varints, put_sint};
use pbfhogg::unstable::pbf::{
    BlobEntry, Block, BlockEncoder, Element, Info, Interner, Object, ObjectBody, scan_payload,
};
use sample::Sample;
use std::hint::black_box;

fn varints(criterion: &mut Criterion) {
    let mut run = Vec::new();
    (0..100_000i64).for_each(|value| put_sint(&mut run, value * 7919 % 20_000));
    let mut group = criterion.benchmark_group("wire");
    group.throughput(Throughput::Bytes(run.len() as u64));
    group.bench_function("varint run", |bencher| {
        bencher.iter(|| {
            let (mut values, mut sum) = (Varints::new(black_box(&run)), 0i64);
            while let Ok(value) = values.read_sint() {
                sum = sum.wrapping_add(value);
            }
            sum
        });
    });
    let mut sums = vec![0; 100_000];
    group.bench_function("sums of a column", |bencher| {
        bencher.iter(|| Varints::new(black_box(&run)).fill_sums(&mut sums, 0));
    });
    // References of ways: a long value, and seven short ones.
    let mut ways = Vec::new();
    (0..12_500i64).for_each(|way| {
        put_sint(&mut ways, 10_000_000_000 + way);
        (0..7).for_each(|value| put_sint(&mut ways, value - 3));
    });
    group.throughput(Throughput::Bytes(ways.len() as u64));
    group.bench_function("sums of runs of eight", |bencher| {
        bencher.iter(|| {
            sums.clear();
            for way in black_box(&ways).chunks_exact(ways.len() / 12_500) {
                Varints::new(way).push_sums(8, &mut sums, 0).unwrap();
            }
            sums.len()
        });
    });
    group.finish();
}

fn blocks(criterion: &mut Criterion) {
    let sample = Sample::load();
    let mut group = criterion.benchmark_group("block");
    for (name, payload) in [
        ("nodes", &sample.nodes),
        ("ways", &sample.ways),
        ("relations", &sample.relations),
    ] {
        group.throughput(Throughput::Bytes(payload.len() as u64));
        group.bench_function(format!("scan of {name}"), |bencher| {
            bencher.iter(|| {
                let mut entry = BlobEntry::default();
                scan_payload(black_box(payload), &mut entry).unwrap();
                entry.count
            });
        });
        group.bench_function(format!("views of {name}"), |bencher| {
            bencher.iter(|| {
                let (block, mut tags) = (Block::parse(black_box(payload)).unwrap(), 0);
                let counted = block.try_for_each(|element| {
                    tags += match &element {
                        Element::Node(node) => node.tags().count(),
                        Element::Way(way) => way.tags().count() + way.refs().count(),
                        Element::Relation(relation) => {
                            relation.tags().count() + relation.members().count()
                        }
                    };
                    Ok::<_, pbfhogg::FormatError>(())
                });
                counted.unwrap();
                tags
            });
        });
    }
    group.finish();
}

fn building(criterion: &mut Criterion) {
    let words: Vec<String> = (0..8000)
        .map(|number| format!("word {}", number * number % 1500))
        .collect();
    let mut group = criterion.benchmark_group("build");
    group.bench_function("string table", |bencher| {
        bencher.iter_batched(
            Interner::default,
            |mut interner| {
                for word in &words {
                    black_box(interner.add(word));
                }
                interner.finish(&[], &mut Vec::new())
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("block of 8000 nodes", |bencher| {
        bencher.iter(|| {
            let (mut builder, mut payload) = (BlockEncoder::default(), Vec::new());
            for (id, word) in (1..).zip(&words) {
                let tags = [("name", word.as_str()), ("highway", "crossing")];
                let info = Info {
                    version: Some(1),
                    timestamp: Some(1_600_000_000 + id),
                    changeset: Some(id),
                    uid: Some(7),
                    user: Some("mapper"),
                    visible: true,
                };
                let tags = if id % 10 == 0 { &tags[..] } else { &[] };
                let body = ObjectBody::Node {
                    location: pbfhogg::unstable::osm::Location::new(
                        id as i32 * 31,
                        id as i32 * -17,
                    ),
                };
                builder
                    .add(&Object {
                        id,
                        info,
                        tags: tags.into(),
                        body,
                    })
                    .unwrap();
            }
            builder.finish(&mut payload);
            payload.len()
        });
    });
    group.finish();
}

fn change_files(criterion: &mut Criterion) {
    let sample = Sample::load();
    let mut group = criterion.benchmark_group("osc");
    group.throughput(Throughput::Elements(
        read_change_files(&[&sample.changes], &Context::default())
            .unwrap()
            .changes()
            .len() as u64,
    ));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| read_change_files(&[&sample.changes], &Context::default()).unwrap())
    });
    group.finish();
}

criterion_group!(benches, varints, blocks, building, change_files);
criterion_main!(benches);
