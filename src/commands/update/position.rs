//! Where a file stands.

use super::Options;
use crate::error::{Error, Result};
use crate::file::{ElementReader, PbfFile};
use crate::pbf::{Element, feature};
use crate::replication::{Ladder, State};
use crate::runtime::Context;
use std::path::Path;

/// The seconds that changes may take until they are published: data may lack changes that are older than its newest object.
const PUBLICATION: i64 = 3600;

/// Where a file stands, as its header says.
pub(super) struct Position {
    pub url: Option<String>,
    sequence: Option<i64>,
    timestamp: Option<i64>,
    /// Whether its ways have the locations of their nodes.
    pub has_locations: bool,
}

impl Position {
    pub(super) fn of(path: &Path, ctx: &Context) -> Result<Self> {
        let header = PbfFile::open(path, ctx)?.header;
        if header.has(feature::HISTORY) {
            let cause = "this is a history file, which update cannot bring up to date; `pbfhogg apply-changes -H` adds \
                         the versions of change files";
            return Err(Error::file(path, cause));
        }
        Ok(Self {
            has_locations: header.has(feature::LOCATIONS),
            url: header.replication_url,
            sequence: header.replication_sequence,
            timestamp: header.replication_timestamp,
        })
    }

    /// The state of the finest server that the file has.
    pub(super) fn state(
        &self,
        options: &Options,
        ladder: &Ladder<'_>,
        ctx: &Context,
    ) -> Result<State> {
        let (server, _) = ladder.finest();
        let is_known =
            self.url.as_deref().map(|url| url.trim_end_matches('/')) == Some(server.base());
        match (self.sequence.filter(|_| is_known), self.timestamp) {
            (Some(sequence), Some(timestamp)) => Ok(State {
                sequence,
                timestamp,
            }),
            (Some(sequence), None) => {
                let state = server.state(sequence)?;
                state.ok_or_else(|| {
                    let cause = format!(
                        "the server has no state with the sequence number {sequence} of the header"
                    );
                    Error::file(&options.file, cause)
                })
            }
            (None, Some(timestamp)) => Ok(State {
                timestamp,
                ..ladder.state_at(timestamp)?
            }),
            (None, None) => ladder.state_at(newest_object(&options.file, ctx)? - PUBLICATION),
        }
    }
}

/// The timestamp of the newest object of a file.
fn newest_object(path: &Path, ctx: &Context) -> Result<i64> {
    let reader = ElementReader::with_context(path, ctx.clone())?;
    let timestamp = |element: Element<'_>| element.info().timestamp;
    let newest =
        reader.par_map_reduce(timestamp, || None, |one: Option<i64>, other| one.max(other))?;
    newest.ok_or_else(|| {
        let cause = "neither the header nor the objects say how old the data is; set it with `pbfhogg cat \
                     --output-header osmosis_replication_timestamp=2026-11-20T00:00:00Z`";
        Error::file(path, cause)
    })
}
