//! Reads places from lines of text. A line is two numbers, a row of a table, or a JSON object.

use super::fields::RowFields;
use super::lines::Quotes;
use crate::geometry::parse_lon_lat;
use crate::osm::Location;
use std::borrow::Cow;

/// The accepted names of a column of latitudes, in the order of the search.
const LAT_NAMES: [&str; 3] = ["lat", "latitude", "y"];
/// The accepted names of a column of longitudes, in the order of the search.
const LON_NAMES: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];

/// Parses a place, which is a latitude and a longitude in degrees. The two numbers are separated by a space, a comma, a
/// semicolon or a tab, or they are the members `lat` and `lon` of a JSON object.
///
/// # Errors
///
/// The text has none of these forms, or the place is not on the earth. The error is a message that describes the
/// problem.
pub fn parse_place(text: &str) -> Result<Location, String> {
    let text = text.trim();
    if text.starts_with('{') {
        let [lat, lon] = parse_json_lat_lon(text)?;
        return location_of_degrees(&lat, &lon);
    }
    let is_separator = |char: char| char.is_whitespace() || matches!(char, ',' | ';');
    let mut parts = text.split(is_separator).filter(|part| !part.is_empty());
    match (parts.next(), parts.next(), parts.count()) {
        (Some(lat), Some(lon), 0) => location_of_degrees(lat, lon),
        (Some(_), Some(_), more) => Err(format!(
            "{} columns, and no line before them that names them: expected a latitude and a longitude; the options can \
             say which columns they are",
            more + 2
        )),
        _ => Err("expected a latitude and a longitude, such as 49.41 8.69".into()),
    }
}

fn location_of_degrees(lat: &str, lon: &str) -> Result<Location, String> {
    let point = parse_lon_lat(lon.trim(), lat.trim())?;
    let place = Location::new(point.lat_e7, point.lon_e7);
    place.ok_or_else(|| "this place is not on the earth".to_owned())
}

/// Returns the latitude and the longitude in a JSON object. The two members may have any of the names in
/// [`LAT_NAMES`] and [`LON_NAMES`].
fn parse_json_lat_lon(text: &str) -> Result<[String; 2], String> {
    let object: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("no JSON object: {error}"))?;
    let member = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| object.get(*name));
        match found.next() {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(serde_json::Value::Number(number)) => Ok(number.to_string()),
            _ => Err(format!("the JSON object has no member {}", names[0])),
        }
    };
    Ok([member(&LAT_NAMES)?, member(&LON_NAMES)?])
}

/// The separator of the columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// A comma, a semicolon or a tab.
    Byte(u8),
    /// One space or more.
    Spaces,
}

impl Separator {
    /// Returns the separator of a line. Quoted text does not count.
    fn of(line: &str) -> Self {
        let outside = line.split('"').step_by(2);
        let is_outside = |byte: &&u8| outside.clone().any(|text| text.as_bytes().contains(byte));
        let found = b"\t;,".iter().find(is_outside);
        found.map_or(Self::Spaces, |byte| Self::Byte(*byte))
    }
}

/// The form of the lines of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineForm {
    pub separator: Separator,
    /// The indices of the columns with the latitude and the longitude; `None` if each line is parsed by
    /// [`parse_place`].
    pub columns: Option<[usize; 2]>,
    /// Whether the first line has the names of the columns.
    pub has_header: bool,
    /// The number of columns of the first line.
    pub width: usize,
    /// Whether the first line ends with a carriage return and a line feed.
    pub is_crlf: bool,
    is_json: bool,
}

impl LineForm {
    /// Detects the form of a table by its first line, with or without its line break. `columns` are the indices of the
    /// columns with the latitude and the longitude, if the user gave them.
    ///
    /// # Errors
    ///
    /// The first line has column names, but no name of a column of latitudes, or no name of a column of longitudes.
    pub(super) fn of(first: &str, columns: Option<[usize; 2]>) -> Result<Self, String> {
        let is_crlf = first.ends_with("\r\n");
        let first = trim_line(first);
        let separator = Separator::of(first);
        if first.trim_start().starts_with('{') && columns.is_none() {
            return Ok(Self {
                separator,
                columns: None,
                has_header: false,
                width: 1,
                is_crlf,
                is_json: true,
            });
        }
        let fields = split_fields(first, separator)?;
        let is_number = |field: &Cow<'_, str>| field.trim().parse::<f64>().is_ok();
        let has_header = match columns {
            Some(columns) => {
                let mut found = columns.iter().filter_map(|column| fields.get(*column));
                !found.any(is_number)
            }
            None => !fields.iter().any(is_number) && fields.len() > 1,
        };
        let named = |names: &[&str]| {
            let is_named = |name: &str| {
                let is_name = |field: &Cow<'_, str>| field.trim().eq_ignore_ascii_case(name);
                fields.iter().position(is_name)
            };
            names.iter().find_map(|name| is_named(name))
        };
        let columns = match (columns, has_header) {
            (None, true) => {
                let found = named(&LAT_NAMES).zip(named(&LON_NAMES));
                let (lat, lon) = found.ok_or(
                    "no columns called lat and lon (or latitude and longitude, or y and x): the options can \
                     say which columns they are",
                )?;
                Some([lat, lon])
            }
            (columns, _) => columns,
        };
        Ok(Self {
            separator,
            columns,
            has_header,
            width: fields.len(),
            is_crlf,
            is_json: false,
        })
    }

    /// Returns the separator with which columns can be appended to the table.
    ///
    /// # Errors
    ///
    /// Columns are separated by spaces, or lines are JSON.
    pub(super) fn csv_separator(&self) -> Result<u8, String> {
        match (self.separator, self.is_json) {
            (Separator::Byte(separator), false) => Ok(separator),
            _ => Err(
                "appended columns need columns with a comma, a semicolon or a tab between them"
                    .into(),
            ),
        }
    }

    /// Returns the positions at which a quote begins a field that may have line breaks. Returns `Quotes::Nowhere` if
    /// columns are separated by spaces, or if [`parse_place`] parses each line.
    pub(super) fn quotes(&self) -> Quotes {
        match (self.separator, self.columns) {
            (Separator::Byte(separator), Some(_)) => Quotes::Behind(separator),
            _ => Quotes::Nowhere,
        }
    }

    /// Returns the place in a line.
    pub(super) fn place_in(&self, line: &str) -> Result<Location, String> {
        let line = trim_line(line);
        let Some(columns) = self.columns else {
            return parse_place(line);
        };
        let fields = split_fields(line, self.separator)?;
        let field = |column: usize| {
            let missing = || match fields.len() {
                1 => "one column".to_owned(),
                count => format!("{count} columns"),
            };
            let found = fields.get(column);
            found.ok_or_else(|| format!("{}: there is no column {}", missing(), column + 1))
        };
        location_of_degrees(field(columns[0])?, field(columns[1])?)
    }
}

/// Returns a line without its line break, and without the byte order mark with which a text may begin.
fn trim_line(line: &str) -> &str {
    let line = line.trim_end_matches(['\n', '\r']);
    line.strip_prefix('\u{feff}').unwrap_or(line)
}

/// Returns the names of the columns in the first line of a table, without quotes and surrounding spaces. Returns no
/// names if a quote is not closed.
pub(super) fn column_names(line: &str, separator: u8) -> Vec<String> {
    let fields = split_fields(trim_line(line), Separator::Byte(separator)).unwrap_or_default();
    fields.iter().map(|name| name.trim().to_owned()).collect()
}

/// Returns the fields of a line, without their quotes.
fn split_fields(line: &str, separator: Separator) -> Result<Vec<Cow<'_, str>>, String> {
    let Separator::Byte(separator) = separator else {
        return Ok(line.split_whitespace().map(Cow::Borrowed).collect());
    };
    if !line.contains('"') {
        let fields = line.split(char::from(separator));
        return Ok(fields.map(Cow::Borrowed).collect());
    }
    let mut reader = csv_core::ReaderBuilder::new().delimiter(separator).build();
    let (mut text, mut ends) = (vec![0; line.len()], vec![0; line.len() + 1]);
    let (first, _, mut len, mut count) = reader.read_record(line.as_bytes(), &mut text, &mut ends);
    if first == csv_core::ReadRecordResult::InputEmpty {
        // An empty input signals the end of the table, which completes the record even if a quote is still open.
        let (text, ends) = (&mut text[len..], &mut ends[count..]);
        let (_, _, more, fields) = reader.read_record(&[], text, ends);
        (len, count) = (len + more, count + fields);
    }
    if RowFields::of(line.as_bytes(), separator).is_open {
        return Err("a quote does not end".into());
    }
    text.truncate(len);
    let mut start = 0;
    let fields = ends.iter().take(count).map(|end| {
        let field = &text[std::mem::replace(&mut start, *end)..*end];
        Cow::Owned(String::from_utf8_lossy(field).into_owned())
    });
    Ok(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lat_e7: i32, lon_e7: i32) -> Option<Location> {
        Location::new(lat_e7, lon_e7)
    }

    #[test]
    fn columns_are_found_by_their_names_or_by_their_numbers() {
        let place = at(494_100_000, 86_900_000);
        for (first, line) in [
            ("id,lat,lon", "7,49.41,8.69"),
            ("LON;Latitude;name", "8.69;49.41;\"a;b\""),
            ("name\tX\tY", "a b\t8.69\t49.41"),
            ("\u{feff}y,x", "49.41,8.69"),
            (
                "\"lat\",\"note\",\"lng\"",
                "\"49.41\",\"say \"\"no\"\"\",8.69",
            ),
            ("lat lon", "49.41   8.69"),
            ("lat,lon,\"a;b\"\r\n", "49.41,8.69,\"x\ny\"\r\n"),
            ("lat,lon,size", "49.41,8.69,5\" pipe"),
        ] {
            let form = LineForm::of(first, None).unwrap();
            assert!(form.has_header, "{first}");
            assert_eq!(form.place_in(line).ok(), place, "{first}");
        }
        for (first, columns, has_header) in [
            ("7,x,8.69,49.41", [3, 2], false),
            ("a,b,c,d", [3, 2], true),
            ("49.41 8.69", [0, 1], false),
            ("\u{feff}49.41,8.69", [0, 1], false),
        ] {
            let form = LineForm::of(first, Some(columns)).unwrap();
            assert_eq!(form.has_header, has_header, "{first}");
            let line = if has_header { "7,x,8.69,49.41" } else { first };
            assert_eq!(form.place_in(line).ok(), place, "{first}");
        }
    }

    #[test]
    fn the_error_for_a_line_without_a_place_has_the_cause() {
        assert!(
            LineForm::of("id,name", None)
                .unwrap_err()
                .contains("which columns")
        );
        let pair = LineForm::of("49.41,8.69", None).unwrap();
        for (line, cause) in [
            ("7,49.41,8.69", "3 columns"),
            ("49.41", "expected a latitude and a longitude"),
            ("", "expected a latitude and a longitude"),
            ("north,east", "'"),
        ] {
            let message = pair.place_in(line).unwrap_err();
            assert!(message.contains(cause), "{line}: {message}");
        }
        let named = LineForm::of("a,lat,lon", None).unwrap();
        for (line, cause) in [
            ("1,2", "2 columns: there is no column 3"),
            ("\"1,2,3", "quote"),
            ("1,north,3", "north"),
            ("1,91,3", "91"),
        ] {
            let message = named.place_in(line).unwrap_err();
            assert!(message.contains(cause), "{line}: {message}");
        }
    }
}
