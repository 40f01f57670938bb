//! `inspect tags`: counts the objects with each key or tag.

mod joined;
mod table;

use crate::engine::block_matcher::BlockMatcher;
use crate::engine::{input, repeats};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds};
use crate::osm::{KindSet, ObjectExpression, ObjectFilter, ObjectKind};
use crate::pbf::{BlobEntry, Block, StringTable};
use crate::runtime::{Context, sort_by};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::path::PathBuf;
use table::CountTable;

options! {
    /// The options of `inspect tags`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
    }
    /// All keys are counted, in at most 1 GB of memory, and listed by descending count.
    new(input: impl Into<PathBuf>);
    setters {
        /// The keys and tags to count. An expression without a value counts keys, and an expression with a value counts
        /// tags. An expression that joins several tags counts each of these tags in the objects that have all of them.
        /// If there is no expression, all keys are counted.
        expressions: Vec<ObjectExpression>,
        /// The kinds of objects whose tags are counted.
        kinds: KindSet = KindSet::ALL,
        /// The minimum count, inclusive, of the keys and tags in the result.
        min_count: u64,
        /// The maximum count, inclusive, of the keys and tags in the result.
        max_count: u64 = u64::MAX,
        /// The order of the result.
        order: TagOrder,
        /// The maximum memory of the counts, in bytes. Counts that exceed this memory are spilled to temporary files.
        max_memory: u64 = 1_000_000_000,
    }
}

/// The order of the result. Equal counts are ordered by key and value, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TagOrder {
    /// Order by count, the most frequent first.
    #[default]
    CountDescending,
    /// Order by count, the least frequent first.
    CountAscending,
    /// Order by key and value, ascending.
    NameAscending,
    /// Order by key and value, descending.
    NameDescending,
}

/// A key or a tag, and the number of objects that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TagCount {
    /// The number of objects that have the key or the tag.
    pub count: u64,
    /// The key.
    pub key: String,
    /// The value; `None` if `count` counts the objects that have the key with any value.
    pub value: Option<String>,
}

/// The result of `inspect tags`.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The keys and tags whose counts are within the limits, in the order of [`Options::order`].
    pub tags: Vec<TagCount>,
    /// The number of distinct keys and tags that were counted, whether or not their counts are within the limits.
    pub distinct: u64,
}

/// Counts the objects with each key or tag.
///
/// Reads one file, which may be unsorted or a history file. In a history file, every version of an object is counted.
/// Blobs without objects of [`Options::kinds`] are not read, and blobs whose strings match no expression need not be
/// decompressed completely. Writes nothing but temporary files.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), up to [`Options::max_memory`] for the counts, and the result.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)).
/// - An expression applies to areas ([`ObjectExpression::areas`]), has a condition on metadata, or only excludes tags.
/// - The counts exceed [`Options::max_memory`], and a temporary file cannot be created, written or read.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.expressions.iter().any(|one| one.areas) {
        let cause =
            "counts of tags do not tell areas from other ways and relations: use wr/ instead of a/";
        return Err(Error::Usage(cause.into()));
    }
    if options
        .expressions
        .iter()
        .any(|one| !one.metadata.is_empty())
    {
        let cause =
            "counts of tags do not look at metadata: filter the file with tags-filter -R first";
        return Err(Error::Usage(cause.into()));
    }
    if options.expressions.iter().any(|one| one.tag.is_none()) {
        let cause = "counts of tags need a key: expressions like '!name' name no tag to count";
        return Err(Error::Usage(cause.into()));
    }
    ctx.expect_phases(1);
    let file = input::open(&options.input, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    count(&file, &plan, options, ctx)
}

/// Counts the tags of an open file. Ignores [`Options::input`].
pub(super) fn count(
    file: &PbfFile,
    plan: &BlobPlan,
    options: &Options,
    ctx: &Context,
) -> Result<Summary> {
    let counter = TagCounter::new(options);
    let blobs = plan
        .entries
        .iter()
        .filter(|entry| counter.may_select(entry));
    let table = CountTable::new(options.max_memory);
    repeats::read_and_warn_of_repeats(file, plan, ctx, |ctx| {
        BlobPass::new("count tags", &file.input, ctx)
            .with_memory_factor(2)
            .run(
                blobs.collect(),
                CountBuffers::default,
                |reader, scratch, entry: &BlobEntry| {
                    let prefilter =
                        |strings: &StringTable<'_>| counter.cannot_match(strings).then_some(());
                    let mut stored = reader.read(entry)?;
                    if stored.decide(prefilter)?.is_none() {
                        stored.decode_in_segments(|payload, _| {
                            counter.count(&Block::parse(payload)?, scratch, &table)
                        })?;
                    }
                    table.spill_if_large()
                },
                |()| Ok(()),
            )
    })?;
    let kept = options.min_count..=options.max_count;
    let (mut tags, distinct) = table.finish(|count| kept.contains(&count))?;
    let by_name = |a: &TagCount, b: &TagCount| (&a.key, &a.value).cmp(&(&b.key, &b.value));
    // A single comparison function handles all orders, because each instantiation of the parallel sort adds much code.
    sort_by(&mut tags, ctx, |a, b| match options.order {
        TagOrder::CountDescending => b.count.cmp(&a.count).then_with(|| by_name(a, b)),
        TagOrder::CountAscending => a.count.cmp(&b.count).then_with(|| by_name(a, b)),
        TagOrder::NameAscending => by_name(a, b),
        TagOrder::NameDescending => by_name(b, a),
    });
    Ok(Summary { tags, distinct })
}

/// The kind of an object, and the indices of a key and its value in the string table of a block.
type TagIndices = (ObjectKind, u32, u32);

/// The buffers of a worker, which are reused for each block.
#[derive(Default)]
struct CountBuffers {
    /// The number of occurrences of each tag whose key matches an expression with a value.
    tags: FxHashMap<TagIndices, u64>,
    /// The number of occurrences of each key that is counted with any value, by the index of the key in the string
    /// table; 0 for all other strings.
    keys: Vec<u64>,
}

struct TagCounter {
    /// The expressions without a value, which count keys; `None` if every key is counted.
    keys: Option<ObjectFilter>,
    /// The expressions with a value, which count tags.
    tags: ObjectFilter,
    kinds: KindSet,
    /// All expressions, if one of them joins several tags or excludes a tag; otherwise `None`.
    joined: Option<Vec<ObjectExpression>>,
}

impl TagCounter {
    fn new(options: &Options) -> Self {
        let has_value = |one: &ObjectExpression| one.tag.as_ref().is_some_and(|tag| tag.has_value);
        let expressions = options.expressions.iter().cloned();
        let (tags, keys): (Vec<_>, Vec<_>) = expressions.partition(has_value);
        let all_keys = options.expressions.is_empty();
        Self {
            keys: (!all_keys).then(|| ObjectFilter::new(keys)),
            tags: ObjectFilter::new(tags),
            kinds: options.kinds,
            joined: joined::joins_or_excludes_tags(&options.expressions)
                .then(|| options.expressions.clone()),
        }
    }

    /// Whether a blob may have objects of the wanted kinds.
    fn may_select(&self, entry: &BlobEntry) -> bool {
        let known = !entry.kinds.is_empty();
        !known || !entry.kinds.intersection(self.kinds).is_empty()
    }

    fn cannot_match(&self, strings: &StringTable<'_>) -> bool {
        self.keys.as_ref().is_some_and(|keys| {
            BlockMatcher::new(keys, strings).cannot_match()
                && BlockMatcher::new(&self.tags, strings).cannot_match()
        })
    }

    /// Adds the keys and tags of a block to `table`. Indices of the string table are counted first, so that each
    /// distinct string is compared and hashed once per block instead of once per object.
    fn count(
        &self,
        block: &Block<'_>,
        scratch: &mut CountBuffers,
        table: &CountTable,
    ) -> FormatResult<()> {
        if let Some(expressions) = &self.joined {
            return joined::count(expressions, self.kinds, block, table);
        }
        let strings = &block.strings;
        let wants_key = |key: &str| {
            self.keys
                .as_ref()
                .is_none_or(|keys| keys.with_key(key).next().is_some())
        };
        let wants: Vec<(bool, bool)> = strings
            .iter()
            .map(|key| (wants_key(key), self.tags.with_key(key).next().is_some()))
            .collect();
        for kind in ObjectKind::ALL
            .into_iter()
            .filter(|kind| self.kinds.contains(*kind))
        {
            scratch.keys.clear();
            scratch.keys.resize(strings.len(), 0);
            let mut wrong = None;
            block.for_each_tag(kind, |key, value| match wants.get(key as usize) {
                None => wrong = Some(key),
                Some((wants_key, wants_tag)) => {
                    scratch.keys[key as usize] += u64::from(*wants_key);
                    if *wants_tag {
                        let tag = (kind, key as u32, value as u32);
                        *scratch.tags.entry(tag).or_default() += 1;
                    }
                }
            })?;
            wrong.map_or(Ok(()), |key| strings.check(key))?;
            self.add_keys(kind, strings, scratch, table)?;
        }
        self.add_tags(strings, scratch, table)
    }

    /// Adds the counts of the wanted keys to `table`. `scratch` has the counts for the objects of `kind` in a block.
    fn add_keys(
        &self,
        kind: ObjectKind,
        strings: &StringTable<'_>,
        scratch: &CountBuffers,
        table: &CountTable,
    ) -> FormatResult<()> {
        for (key, count) in strings.iter().zip(&scratch.keys) {
            let concerned = *count > 0
                && self.keys.as_ref().is_none_or(|keys| {
                    keys.with_key(key)
                        .any(|expression| expression.kinds.contains(kind))
                });
            if concerned {
                table.add(key, None, *count);
            }
        }
        Ok(())
    }

    /// Adds the counts of the wanted tags of a block to `table`.
    fn add_tags(
        &self,
        strings: &StringTable<'_>,
        scratch: &mut CountBuffers,
        table: &CountTable,
    ) -> FormatResult<()> {
        for ((kind, key, value), count) in scratch.tags.drain() {
            let (key, value) = (strings.get(key.into())?, strings.get(value.into())?);
            let mut expressions = self.tags.with_key(key);
            if expressions.any(|one| one.kinds.contains(kind) && one.matches_value(value)) {
                table.add(key, Some(value), count);
            }
        }
        Ok(())
    }
}
