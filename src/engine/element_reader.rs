//! Reads all objects of a file, on one core or on all.

use super::object_selection::{
    Entries, ObjectSelection, ObjectsWithin, PreparedSelection, may_have_kinds, may_have_objects_in,
};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::{BlobDecoder, BlobPass, BlobPlan, DataBlob, FilePart, PbfFile};
use crate::io::Input;
use crate::osm::{Bbox, KindSet, ObjectId};
use crate::pbf::{BlobEntry, Block, Element, HeaderBlock, feature};
use crate::runtime::{Context, into_mutex_value, lock};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// Reads the objects of a PBF file with any compression and in any order, with or without an index. [`open`] opens
/// files in other formats.
///
/// [`open`]: crate::read::open
///
/// Methods take `&self`, and may be called repeatedly, because each call reads the file from its start. A reader uses 8
/// MB of memory, and 4 MB more for each worker thread, whatever the size of the file.
///
/// ```no_run
/// use pbfhogg::{Element, ElementReader};
///
/// let reader = ElementReader::from_path("planet.osm.pbf")?;
/// let cafes = reader.par_map_reduce(
///     |element| match element {
///         Element::Node(node) => u64::from(node.tags().any(|tag| tag == ("amenity", "cafe"))),
///         _ => 0,
///     },
///     || 0,
///     |a, b| a + b,
/// )?;
/// # let _ = cafes;
/// # Ok::<(), pbfhogg::Error>(())
/// ```
#[derive(Debug)]
pub struct ElementReader {
    pub(super) file: PbfFile,
    pub(super) selection: PreparedSelection,
    /// The objects in the box of the selection; unset until [`prepare`](Self::prepare) finds them.
    within: OnceLock<ObjectsWithin>,
    /// The entries of the blobs of a file without an index, with the kinds of their objects; unset until
    /// [`find_kinds`](Self::find_kinds) finds them.
    found: OnceLock<Vec<BlobEntry>>,
    pub(super) ctx: Context,
}

impl ElementReader {
    /// Opens a file, or standard input if `path` is `-`. Methods that run in parallel use all cores.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or it is not a PBF file.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::with_context(path, Context::default())
    }

    /// Opens a file as [`from_path`](Self::from_path) does. `ctx` defines the number of threads, and the observer of
    /// progress and warnings.
    ///
    /// # Errors
    ///
    /// As [`from_path`](Self::from_path).
    pub fn with_context(path: impl AsRef<Path>, ctx: Context) -> Result<Self> {
        let input = Input::open_in(path.as_ref(), &ctx)?;
        Ok(Self::of_file(PbfFile::of_input(input, &ctx)?, ctx))
    }

    /// Copies a stream to an unnamed temporary file, and opens that file. To read a stream without a copy, use
    /// [`BlobStream`](crate::read::BlobStream).
    ///
    /// ```
    /// # let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/table-version-1.osm.pbf"))?;
    /// let reader = pbfhogg::ElementReader::from_reader(bytes.as_slice())?;
    /// reader.for_each(|element| println!("{} {}", element.kind(), element.id()))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The stream cannot be read, the temporary file cannot be written, or the stream is not a PBF file.
    pub fn from_reader(stream: impl Read) -> Result<Self> {
        let input = Input::spool(Path::new("the stream"), stream)?;
        let ctx = Context::default();
        Ok(Self::of_file(PbfFile::of_input(input, &ctx)?, ctx))
    }

    /// Creates a reader for a file that is open already.
    pub fn of_file(file: PbfFile, ctx: Context) -> Self {
        Self {
            file,
            selection: PreparedSelection::default(),
            within: OnceLock::new(),
            found: OnceLock::new(),
            ctx,
        }
    }

    /// Restricts the reader to the objects that meet all conditions of a selection.
    ///
    /// # Errors
    ///
    /// The table of contents lacks the blobs of the selected part, so the part belongs to another file.
    pub fn select(self, selection: ObjectSelection) -> Result<Self> {
        if let Some(part) = &selection.part
            && !self.file.has_part(part)
        {
            let cause = "this is not the file that was divided into parts, or it has changed since";
            return Err(Error::file(self.file.input.path(), cause));
        }
        Ok(Self {
            selection: PreparedSelection::new(selection),
            within: OnceLock::new(),
            ..self
        })
    }

    /// Restricts the reader to the kinds of objects in `kinds`. Blobs that have only other kinds, according to an
    /// index, are not read.
    #[must_use]
    pub fn kinds(mut self, kinds: KindSet) -> Self {
        self.selection.kinds = kinds;
        self.within = OnceLock::new();
        self
    }

    /// Restricts the reader to objects in a box, including its edges, as [`ObjectSelection::bbox`] does. Blobs of nodes
    /// that lie outside the box, according to an index, are not read. If ways or relations are selected, other passes
    /// over the file find the nodes and ways in the box first.
    #[must_use]
    pub fn within(mut self, bbox: Bbox) -> Self {
        self.selection.boxes = Some(bbox.on_map());
        self.within = OnceLock::new();
        self
    }

    /// Restricts the reader to the objects in `ids`. Blobs that have none of these objects, according to an index, are
    /// not read. In a sorted file with a table of contents, one blob is read for each id.
    ///
    /// ```no_run
    /// use pbfhogg::{ElementReader, ObjectId, ObjectKind};
    ///
    /// let reader = ElementReader::from_path("berlin.osm.pbf")?;
    /// let way = ObjectId { kind: ObjectKind::Way, id: 4_615_042 };
    /// let name = reader.ids([way]).find_map(|element| {
    ///     element.tags().find(|(key, _)| *key == "name").map(|(_, name)| name.to_owned())
    /// })?;
    /// # let _ = name;
    /// # Ok::<(), pbfhogg::Error>(())
    /// ```
    #[must_use]
    pub fn ids(mut self, ids: impl IntoIterator<Item = ObjectId>) -> Self {
        self.selection.set_ids(ids);
        self
    }

    /// Finds the kinds of the objects in each blob, so that blobs without objects of the selected kinds need not be
    /// read. Does so only if the selection needs the kinds, no index has them, and the header declares canonical order.
    /// Decodes some of the blobs.
    pub(crate) fn find_kinds(&self) -> Result<()> {
        if self.selection.needs_kinds()
            && self.found.get().is_none()
            && let Some(plan) = BlobPlan::open_for_kinds_by_order(&self.file, &self.ctx)?
        {
            let _ = self.found.set(plan.entries);
        }
        Ok(())
    }

    /// Finds the nodes and ways in the box of the selection, before objects are read.
    pub(super) fn prepare(&self, ctx: &Context) -> Result<()> {
        if let Some(boxes) = self.selection.boxes
            && self.within.get().is_none()
        {
            let entries_of = |kind| {
                self.wanted_entries(None, move |entry| {
                    may_have_kinds(entry, KindSet::of(kind)) && may_have_objects_in(entry, &boxes)
                })
            };
            let input = &self.file.input;
            let found = ObjectsWithin::find(boxes, &self.selection, input, entries_of, ctx)?;
            let _ = self.within.set(found);
        }
        Ok(())
    }

    /// Returns the decoded header blob of the file.
    pub const fn header(&self) -> &HeaderBlock {
        &self.file.header
    }

    /// Whether the file is a history, which may have several versions of an object, and deleted versions.
    pub fn is_history(&self) -> bool {
        self.file.header.has(feature::HISTORY)
    }

    /// Returns the blobs that may contain selected objects, in file order. Each blob is read when the iterator reaches
    /// it, and stays compressed until [`DataBlob::decode`] is called.
    ///
    /// A blob contains all its objects, including those that are not selected.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a blob is damaged. The iteration ends after an error.
    pub fn blobs(&self) -> impl Iterator<Item = Result<DataBlob>> + '_ {
        let path: Arc<Path> = self.file.input.path().into();
        let mut reader = BlobDecoder::new(&self.file.input, &self.ctx);
        let mut has_failed = false;
        self.entries().map_while(move |entry| {
            if has_failed {
                return None;
            }
            let blob = entry.and_then(|entry| {
                let body = reader.read(&entry)?.message.to_vec();
                Ok(DataBlob::new(body, path.clone(), entry))
            });
            has_failed = blob.is_err();
            Some(blob)
        })
    }

    /// Returns the entries of the blobs that may contain selected objects, in file order.
    pub(super) fn entries(&self) -> Entries<'_> {
        let part = self.selection.part.as_ref();
        self.wanted_entries(part, |entry| self.selection.may_select(entry))
    }

    /// Returns the entries that `is_wanted` accepts, in file order.
    fn wanted_entries<'s>(
        &'s self,
        part: Option<&FilePart>,
        is_wanted: impl Fn(&BlobEntry) -> bool + Send + 's,
    ) -> Entries<'s> {
        let is_wanted = move |entry: &Result<BlobEntry>| match entry {
            Ok(entry) => is_wanted(entry),
            Err(_) => true,
        };
        let known = self.file.toc.as_ref().map(|toc| &toc.entries);
        match known.or_else(|| self.found.get()) {
            Some(entries) => Box::new(entries.iter().copied().map(Ok).filter(is_wanted)),
            None => {
                let entries = match part {
                    Some(part) => self.file.frame_entries_in(part.bytes(), part.first_blob),
                    None => self.file.frame_entries(),
                };
                Box::new(entries.filter(is_wanted))
            }
        }
    }

    /// Calls `visit` with each object in file order, on the calling thread only.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a blob is damaged. The objects before the damage have been visited.
    pub fn for_each(&self, mut visit: impl FnMut(Element<'_>)) -> Result<()> {
        self.try_for_each(|element| {
            visit(element);
            Ok(())
        })
    }

    /// Calls `visit` with each object in file order, on the calling thread only, until `visit` fails.
    ///
    /// ```no_run
    /// use pbfhogg::ElementReader;
    /// use std::io::Write;
    ///
    /// let reader = ElementReader::from_path("berlin.osm.pbf")?;
    /// let mut list = std::fs::File::create("ids.txt")?;
    /// reader.try_for_each(|element| -> Result<(), Box<dyn std::error::Error>> {
    ///     writeln!(list, "{} {}", element.kind(), element.id())?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each), and the first error of `visit`.
    pub fn try_for_each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stopped = self.find_map(|element| visit(element).err())?;
        stopped.map_or(Ok(()), Err)
    }

    /// Calls `visit` with each object in file order, on the calling thread only, until `visit` returns `Some`.
    ///
    /// ```no_run
    /// use pbfhogg::{Element, ElementReader};
    ///
    /// let reader = ElementReader::from_path("berlin.osm.pbf")?;
    /// let first_pub = reader.find_map(|element| match element {
    ///     Element::Node(node) if node.tags().any(|tag| tag == ("amenity", "pub")) => Some(node.id()),
    ///     _ => None,
    /// })?;
    /// # let _ = first_pub;
    /// # Ok::<(), pbfhogg::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn find_map<B>(
        &self,
        mut visit: impl FnMut(Element<'_>) -> Option<B>,
    ) -> Result<Option<B>> {
        self.prepare(&self.ctx)?;
        let mut blobs = BlobDecoder::new(&self.file.input, &self.ctx);
        for entry in self.entries() {
            self.ctx.cancellation.check()?;
            let found = blobs.decode(&entry?, |payload| self.visit(payload, &mut visit))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Calls `visit` with each object in file order, on the calling thread. Concurrently, other threads read and
    /// decompress the following blobs.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn for_each_pipelined(&self, mut visit: impl FnMut(Element<'_>)) -> Result<()> {
        self.prepare(&self.ctx)?;
        let spare: Mutex<Vec<Vec<u8>>> = Mutex::default();
        // A payload is several times as long as its frame, so each blob in flight counts as four times the size of its
        // frame.
        self.blob_pass().with_memory_factor(4).run_stream(
            self.entries(),
            || (),
            |reader, (), entry| {
                let mut payload = lock(&spare).pop().unwrap_or_default();
                payload.clear();
                payload.extend_from_slice(reader.payload(&entry)?);
                Ok((entry, payload))
            },
            |(entry, payload): (BlobEntry, Vec<u8>)| {
                let visited = self.visit(&payload, &mut |element| {
                    visit(element);
                    None::<()>
                });
                lock(&spare).push(payload);
                let error = |source| {
                    let number = u64::from(entry.number);
                    self.file.input.blob_error(number, entry.offset, source)
                };
                visited.map(drop).map_err(error)
            },
        )
    }

    /// Calls `map` with each object, on all cores, and reduces the results. The results within a blob, and then the
    /// results of the blobs, are reduced in file order. If `reduce` is associative, the result does not depend on the
    /// number of threads.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn par_map_reduce<T: Send>(
        &self,
        map: impl Fn(Element<'_>) -> T + Sync,
        identity: impl Fn() -> T + Sync,
        reduce: impl Fn(T, T) -> T + Sync,
    ) -> Result<T> {
        // `reduce` consumes its arguments, so `total` and `part` are options. They are `None` only during the call of
        // `reduce`.
        let mut total = Some(identity());
        self.prepare(&self.ctx)?;
        self.blob_pass().run_stream(
            self.entries(),
            || (),
            |reader, (), entry| {
                let mut part = Some(identity());
                reader.decode(&entry, |payload| {
                    self.visit(payload, &mut |element| {
                        part = part.take().map(|part| reduce(part, map(element)));
                        None::<()>
                    })
                })?;
                Ok(part)
            },
            |part| {
                let both = total.take().zip(part);
                total = both.map(|(total, part)| reduce(total, part));
                Ok(())
            },
        )?;
        total.ok_or_else(|| Error::internal("a reduction lost its result"))
    }

    /// Folds all objects on all cores into states, at most one per thread, and returns the states. Each state covers an
    /// arbitrary set of blobs, in an arbitrary order. The caller has to merge the states in such a way that the result
    /// is the same for every distribution and every order of the blobs.
    ///
    /// ```no_run
    /// use pbfhogg::ElementReader;
    /// use std::collections::HashMap;
    ///
    /// let reader = ElementReader::from_path("berlin.osm.pbf")?;
    /// let states = reader.par_fold(HashMap::<String, u64>::new, |counts, element| {
    ///     for (key, _) in element.tags() {
    ///         match counts.get_mut(key) {
    ///             Some(count) => *count += 1,
    ///             None => drop(counts.insert(key.to_owned(), 1)),
    ///         }
    ///     }
    /// })?;
    /// let mut counts = HashMap::new();
    /// for (key, count) in states.into_iter().flatten() {
    ///     *counts.entry(key).or_insert(0) += count;
    /// }
    /// # Ok::<(), pbfhogg::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn par_fold<S: Send>(
        &self,
        init: impl Fn() -> S + Sync,
        fold: impl Fn(&mut S, Element<'_>) + Sync,
    ) -> Result<Vec<S>> {
        self.par_try_fold(init, |state, element| {
            fold(state, element);
            Ok(())
        })
    }

    /// Folds all objects as [`par_fold`](Self::par_fold) does, until `fold` fails. After that, threads finish their
    /// current blobs, and start no others.
    ///
    /// ```no_run
    /// use pbfhogg::ElementReader;
    ///
    /// let reader = ElementReader::from_path("berlin.osm.pbf")?;
    /// let counts = reader.par_try_fold(|| 0_u64, |count, element| -> Result<(), Box<dyn std::error::Error + Send +
    /// Sync>> {
    ///     for (key, value) in element.tags() {
    ///         if key == "maxspeed" && value.parse::<u32>().is_err() {
    ///             return Err(format!("{} {}: {value}", element.kind(), element.id()).into());
    ///         }
    ///     }
    ///     *count += 1;
    ///     Ok(())
    /// });
    /// # let _ = counts;
    /// # Ok::<(), pbfhogg::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each), and an error of `fold`. If several calls fail, returns the error that occurred
    /// first. It need not be the first in the file.
    pub fn par_try_fold<S: Send, E: From<Error> + Send>(
        &self,
        init: impl Fn() -> S + Sync,
        fold: impl Fn(&mut S, Element<'_>) -> Result<(), E> + Sync,
    ) -> Result<Vec<S>, E> {
        self.prepare(&self.ctx)?;
        let states: Mutex<Vec<S>> = Mutex::default();
        let stopped: Mutex<Option<E>> = Mutex::new(None);
        let entries = self.entries().take_while(|_| lock(&stopped).is_none());
        self.blob_pass().run_stream(
            entries,
            || (),
            |reader, (), entry| {
                let idle = lock(&states).pop();
                let mut state = idle.unwrap_or_else(&init);
                let failed = reader.decode(&entry, |payload| {
                    self.visit(payload, &mut |element| fold(&mut state, element).err())
                });
                lock(&states).push(state);
                if let Some(error) = failed? {
                    lock(&stopped).get_or_insert(error);
                }
                Ok(())
            },
            |()| Ok(()),
        )?;
        match into_mutex_value(stopped) {
            Some(error) => Err(error),
            None => Ok(into_mutex_value(states)),
        }
    }

    fn blob_pass(&self) -> BlobPass<'_, '_> {
        BlobPass::new("read objects", &self.file.input, &self.ctx)
    }

    /// Visits the selected objects of a block until `visit` fails.
    pub(super) fn visit_block<E: From<FormatError>>(
        &self,
        block: &Block<'_>,
        visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.selection
            .visit_selected(block, self.within.get(), visit)
    }

    /// Visits the selected objects of a block until `visit` returns `Some`.
    fn visit<B>(
        &self,
        payload: &[u8],
        visit: &mut impl FnMut(Element<'_>) -> Option<B>,
    ) -> FormatResult<Option<B>> {
        let block = Block::parse(payload)?;
        let stopped = self.visit_block(&block, |element| {
            visit(element).map_or(Ok(()), |found| Err(Stop::Found(found)))
        });
        match stopped {
            Ok(()) => Ok(None),
            Err(Stop::Found(found)) => Ok(Some(found)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

/// The reason for ending the visit of a block early.
enum Stop<B> {
    Found(B),
    Failed(FormatError),
}

impl<B> From<FormatError> for Stop<B> {
    fn from(error: FormatError) -> Self {
        Self::Failed(error)
    }
}
