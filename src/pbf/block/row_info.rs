//! Encodes the metadata of an object as a part of a row. Rows are the byte strings that are sorted on disk.

use super::element::Info;
use crate::error::{FormatError, FormatResult};
use crate::pbf::InfoFields;
use crate::pbf::wire::{Varints, put_sint, put_text};

/// The metadata of an object as it is stored in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowInfo<'a> {
    present: InfoFields,
    pub version: Option<u32>,
    /// The time in seconds since 1970.
    pub timestamp: Option<i64>,
    pub changeset: Option<i64>,
    pub uid: Option<i32>,
    pub user: Option<&'a [u8]>,
}

/// Returns the attributes that an object has. In this set, [`InfoFields::VISIBLE`] means that the object is a deleted
/// version.
fn present_fields(info: &Info<'_>) -> InfoFields {
    let fields = [
        (info.version.is_some(), InfoFields::VERSION),
        (info.timestamp.is_some(), InfoFields::TIMESTAMP),
        (info.changeset.is_some(), InfoFields::CHANGESET),
        (info.uid.is_some(), InfoFields::UID),
        (info.user.is_some(), InfoFields::USER),
        (!info.visible, InfoFields::VISIBLE),
    ];
    let present = fields.iter().filter(|(is_present, _)| *is_present);
    present.fold(InfoFields::NONE, |all, (_, field)| all.union(*field))
}

/// Appends the metadata of an object to a row.
pub(crate) fn put_row_info(out: &mut Vec<u8>, info: &Info<'_>) {
    let present = present_fields(info);
    out.push(present.bits());
    let numbers = [
        info.version.map(i64::from),
        info.timestamp,
        info.changeset,
        info.uid.map(i64::from),
    ];
    for number in numbers.into_iter().flatten() {
        put_sint(out, number);
    }
    if let Some(user) = info.user {
        put_text(out, user);
    }
}

impl<'a> RowInfo<'a> {
    /// Reads the metadata that [`put_row_info`] has written.
    pub(crate) fn read(row: &mut Varints<'a>) -> FormatResult<Self> {
        let [flags] = row.read_array()?;
        let present = InfoFields::from_bits(flags);
        let mut number = |field| {
            let is_present = present.contains(field);
            is_present.then(|| row.read_sint()).transpose()
        };
        let mut info = Self {
            present,
            version: number(InfoFields::VERSION)?.map(|version| version as u32),
            timestamp: number(InfoFields::TIMESTAMP)?,
            changeset: number(InfoFields::CHANGESET)?,
            uid: number(InfoFields::UID)?.map(|uid| uid as i32),
            user: None,
        };
        if present.contains(InfoFields::USER) {
            info.user = Some(row.read_text()?);
        }
        Ok(info)
    }

    /// Converts the metadata to the [`Info`] of an object. Fails if the name of the user is not UTF-8.
    pub(crate) fn to_info(self) -> FormatResult<Info<'a>> {
        let user = self.user.map(std::str::from_utf8).transpose();
        Ok(Info {
            version: self.version,
            timestamp: self.timestamp,
            changeset: self.changeset,
            uid: self.uid,
            user: user.map_err(|_| FormatError::new("a row has a name that is not UTF-8"))?,
            visible: !self.present.contains(InfoFields::VISIBLE),
        })
    }
}
