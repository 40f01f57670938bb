//! Encoding answers as JSON (`reference/geocode.md`). The code is written by hand, because code derived by `serde`
//! takes 1.5 times as long. The difference is 5 to 8 % of the time of a query.

use super::answer::{
    Address, Answer, AnsweringObject, NamedArea, NearAddress, NearObject, NearPlace, NearRoad,
    NearStreet, Nearest, Sources,
};
use serde::Serialize;

impl Answer<'_> {
    /// Appends the answer as a JSON object. Parts that the answer does not have are left out.
    pub fn put_json(&self, out: &mut Vec<u8>) {
        put_json_object(out, |members| {
            members.put_nested("query", |members| {
                members.put_number("lat", degrees(self.query.lat_e7()));
                members.put_number("lon", degrees(self.query.lon_e7()));
            });
            members.put_text("label", &self.label);
            if let Some(object) = &self.object {
                members.put_nested("object", |members| put_answering_object(members, object));
            }
            members.put_nested("address", |members| put_address(members, &self.address));
            members.put_nested("sources", |members| put_sources(members, &self.sources));
            members.put_nested("nearest", |members| put_nearest(members, &self.nearest));
            members.put_list("areas", &self.areas, put_area);
        });
    }

    /// Returns the answer as a JSON object.
    pub fn json(&self) -> String {
        let mut out = Vec::new();
        self.put_json(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn put_address(members: &mut JsonMembers<'_>, address: &Address<'_>) {
    members.put_optional_text("house_number", address.house_number.as_deref());
    members.put_optional_text("house_name", address.house_name);
    members.put_optional_text("unit", address.unit);
    members.put_optional_text("block_number", address.block_number);
    members.put_optional_text("conscription_number", address.conscription_number);
    members.put_optional_text("street_number", address.street_number);
    members.put_optional_text("street", address.street);
    members.put_optional_text("place", address.place);
    members.put_optional_text("neighbourhood", address.neighbourhood);
    members.put_optional_text("postcode", address.postcode);
    members.put_optional_text("suburb", address.suburb);
    members.put_optional_text("city", address.city);
    members.put_optional_text("city_kind", address.city_kind);
    members.put_optional_text("county", address.county);
    members.put_optional_text("state", address.state);
    members.put_optional_text("state_code", address.state_code);
    members.put_optional_text("country", address.country);
    members.put_optional_text("country_code", address.country_code.as_deref());
}

fn put_sources(members: &mut JsonMembers<'_>, sources: &Sources) {
    let mut source = |key, source: &Option<NearObject>| {
        if let Some(source) = source {
            members.put_nested(key, |members| put_object(members, source));
        }
    };
    source("house_number", &sources.house_number);
    source("street", &sources.street);
    source("place", &sources.place);
    source("postcode", &sources.postcode);
    source("suburb", &sources.suburb);
    source("city", &sources.city);
    source("county", &sources.county);
    source("state", &sources.state);
    source("country", &sources.country);
}

fn put_nearest(members: &mut JsonMembers<'_>, nearest: &Nearest<'_>) {
    fn put_near<T>(
        members: &mut JsonMembers<'_>,
        key: &'static str,
        near: Option<&T>,
        put: fn(&mut JsonMembers<'_>, &T),
    ) {
        if let Some(near) = near {
            members.put_nested(key, |members| put(members, near));
        }
    }
    put_near(
        members,
        "address",
        nearest.address.as_ref(),
        put_near_address,
    );
    put_near(members, "street", nearest.street.as_ref(), put_street);
    put_near(members, "road", nearest.road.as_ref(), put_road);
    let interpolation = nearest.interpolation.as_ref();
    put_near(members, "interpolation", interpolation, put_near_address);
    put_near(members, "place", nearest.place.as_ref(), put_place);
}

fn put_object(members: &mut JsonMembers<'_>, object: &NearObject) {
    members.put_text("type", object.kind.name());
    members.put_number("id", object.id);
    let metres = (object.distance_m * 100.0).round() / 100.0;
    members.put_number("distance_m", metres);
}

fn put_answering_object(members: &mut JsonMembers<'_>, answering: &AnsweringObject<'_>) {
    put_object(members, &answering.object);
    members.put_optional_text("category", answering.class.map(|(key, _)| key));
    members.put_optional_text("kind", answering.class.map(|(_, value)| value));
    members.put_optional_text("name", answering.name);
}

fn put_near_address(members: &mut JsonMembers<'_>, near: &NearAddress<'_>) {
    put_object(members, &near.object);
    members.put_optional_text("house_number", near.house_number.as_deref());
    members.put_optional_text("street", near.street);
    members.put_optional_text("place", near.place);
}

fn put_street(members: &mut JsonMembers<'_>, near: &NearStreet<'_>) {
    put_object(members, &near.object);
    members.put_text("name", near.name);
}

fn put_road(members: &mut JsonMembers<'_>, near: &NearRoad<'_>) {
    put_object(members, &near.object);
    members.put_text("highway", near.highway);
    members.put_optional_text("ref", near.reference);
}

fn put_place(members: &mut JsonMembers<'_>, near: &NearPlace<'_>) {
    put_object(members, &near.object);
    members.put_text("place", near.place);
    members.put_text("name", near.name);
}

fn put_area(members: &mut JsonMembers<'_>, area: &NamedArea<'_>) {
    members.put_text("type", area.object_kind.name());
    members.put_number("id", area.id);
    members.put_number("admin_level", area.admin_level);
    members.put_text("name", area.name);
    members.put_text("kind", area.kind);
}

fn degrees(e7: i32) -> f64 {
    f64::from(e7) / 1e7
}

/// Writes a JSON object with the members that `put` writes.
fn put_json_object(out: &mut Vec<u8>, put: impl FnOnce(&mut JsonMembers<'_>)) {
    out.push(b'{');
    put(&mut JsonMembers {
        out,
        is_first: true,
    });
    out.push(b'}');
}

/// A writer of the members of a JSON object.
struct JsonMembers<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl JsonMembers<'_> {
    #[inline]
    fn put_key(&mut self, key: &'static str) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn put_nested(&mut self, key: &'static str, put: impl FnOnce(&mut JsonMembers<'_>)) {
        self.put_key(key);
        put_json_object(self.out, put);
    }

    /// Writes a member whose value is a list of objects. `put` writes the members of an object.
    fn put_list<T>(&mut self, key: &'static str, items: &[T], put: fn(&mut JsonMembers<'_>, &T)) {
        self.put_key(key);
        self.out.push(b'[');
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                self.out.push(b',');
            }
            put_json_object(self.out, |members| put(members, item));
        }
        self.out.push(b']');
    }

    fn put_optional_text(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.put_text(key, text);
        }
    }

    #[inline]
    fn put_text(&mut self, key: &'static str, text: &str) {
        self.put_key(key);
        // The loop does not end early, so that the compiler uses vector instructions.
        let is_plain = text.bytes().fold(true, |is_plain, byte| {
            is_plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\')
        });
        if is_plain {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
        } else {
            self.put_value(text);
        }
    }

    fn put_number(&mut self, key: &'static str, number: impl Serialize) {
        self.put_key(key);
        self.put_value(&number);
    }

    fn put_value(&mut self, value: &(impl Serialize + ?Sized)) {
        // Strings and numbers can always be encoded as JSON, and writing to a vector does not fail.
        let written = serde_json::to_writer(&mut *self.out, value);
        debug_assert!(written.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn json_members_parse_as_they_were_written() {
        let mut out = Vec::new();
        let texts = [
            "plain",
            "",
            "Weg \"7\"",
            "a\\b",
            "tab\tnew\nline\u{1}",
            "Straße 東京",
        ];
        put_json_object(&mut out, |members| {
            members.put_nested("empty", |_| ());
            members.put_list("none", &[], put_area);
            members.put_optional_text("absent", None);
            members.put_list("texts", &texts, |members, text| {
                members.put_text("text", text)
            });
            members.put_number("level", None::<u8>);
            members.put_number("id", i64::MIN);
            members.put_number("metres", 12.5);
        });
        let parsed: Value = serde_json::from_slice(&out).unwrap();
        let texts: Vec<Value> = texts.map(|text| json!({"text": text})).into();
        let expected = json!({
            "empty": {}, "none": [], "texts": texts, "level": null, "id": i64::MIN, "metres": 12.5,
        });
        assert_eq!(parsed, expected);
    }
}
