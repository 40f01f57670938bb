//! Random rules of `tags-edit`, and plain, slow code that applies them.

use super::random::Random;
use super::{Kind, Object};

/// The keys of objects and rules. Rules also name keys that no object has.
const KEYS: [&str; 9] = [
    "name",
    "name:de",
    "name:fr",
    "source",
    "highway",
    "note",
    "addr:city",
    "tiger:id",
    "old name",
];
/// The values of objects and rules.
const VALUES: [&str; 8] = [
    "yes", "no", "primary", "Straße", "foo bar", "a=b, c", "oo", "source",
];
const USERS: [&str; 3] = ["ann", "bob", "zwölf"];

/// The objects that a rule concerns.
#[derive(Debug, Clone)]
struct Condition {
    text: String,
    kinds: &'static [Kind],
    /// Whether only areas match.
    is_area: bool,
    key: Option<Keys>,
    value: Option<&'static str>,
    is_negated: bool,
    /// A key that an object must not have.
    without: Option<&'static str>,
    user: Option<&'static str>,
    least_version: i64,
    largest_id: Option<i64>,
}

/// A list of keys.
#[derive(Debug, Clone)]
struct Keys(Vec<String>);

#[derive(Debug, Clone)]
enum Action {
    Drop(Keys),
    Keep(Keys),
    Set(&'static str, &'static str),
    Default(&'static str, &'static str),
    Rename(&'static str, &'static str),
    Copy(&'static str, &'static str),
    Replace(Keys, fn(&str) -> String),
}

/// A rule, and its text.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule as it is given to the program.
    pub text: String,
    /// The option of the command line that gives the rule, and its value.
    pub option: [String; 2],
    condition: Option<Condition>,
    action: Action,
}

/// A regular expression, the text in place of its matches, and the same as a function.
type Replacement = (&'static str, &'static str, fn(&str) -> String);

/// Regular expressions with the texts in place of their matches, and the same as functions.
const REPLACEMENTS: [Replacement; 6] = [
    ("o", "0", |value| value.replace('o', "0")),
    ("^foo", "\"\"", |value| {
        value.strip_prefix("foo").unwrap_or(value).to_owned()
    }),
    ("o+$", "\"\"", |value| {
        value.trim_end_matches('o').to_owned()
    }),
    ("^.*$", "one value", |_| "one value".to_owned()),
    ("\"a=b, (.)\"", "$1$1", |value| {
        value.replace("a=b, c", "cc")
    }),
    ("^(?:yes|no)$", "\"\"", |value| match value {
        "yes" | "no" => String::new(),
        other => other.to_owned(),
    }),
];

/// Letters before the slash of an expression, the kinds that they stand for, and whether only areas match.
const KINDS: [(&str, &[Kind], bool); 4] = [
    ("", &[Kind::Node, Kind::Way, Kind::Relation], false),
    ("n/", &[Kind::Node], false),
    ("wr/", &[Kind::Way, Kind::Relation], false),
    ("a/", &[Kind::Way, Kind::Relation], true),
];

fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len())]
}

impl Keys {
    fn random(random: &mut Random) -> Self {
        let count = 1 + random.below(3);
        let key = |random: &mut Random| match random.below(6) {
            0 => "name*".to_owned(),
            1 => "*:*".to_owned(),
            2 => "tiger:*".to_owned(),
            _ => one_of(random, &KEYS).to_owned(),
        };
        Self((0..count).map(|_| key(random)).collect())
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.as_str() {
            "*:*" => key.contains(':'),
            pattern => match pattern.strip_suffix('*') {
                Some(start) => key.starts_with(start),
                None => key == pattern,
            },
        })
    }
}

impl Condition {
    fn random(random: &mut Random) -> Self {
        let (letters, kinds, is_area) = one_of(random, &KINDS);
        let mut condition = Self {
            text: letters.to_owned(),
            kinds,
            is_area,
            key: None,
            value: None,
            is_negated: false,
            without: None,
            user: None,
            least_version: 0,
            largest_id: None,
        };
        if random.below(4) > 0 {
            let key = match random.below(4) {
                0 => "name*",
                _ => one_of(random, &KEYS),
            };
            condition.text += key;
            condition.key = Some(Keys(vec![key.to_owned()]));
            if random.below(3) == 0 {
                let value = one_of(random, &["yes", "primary", "foo bar", "nothing"]);
                condition.is_negated = random.below(2) == 0;
                condition.text += if condition.is_negated { "!=" } else { "=" };
                condition.text += value;
                condition.value = Some(value);
            }
        }
        if random.below(4) == 0 {
            let key = one_of(random, &["name", "source", "addr:city", "highway"]);
            condition.text += if condition.key.is_some() { "&!" } else { "!" };
            condition.text += key;
            condition.without = Some(key);
        }
        let has_tags = condition.key.is_some() || condition.without.is_some();
        if !has_tags || random.below(4) == 0 {
            if has_tags {
                condition.text.push(' ');
            }
            condition.add_attribute(random);
        }
        condition
    }

    fn add_attribute(&mut self, random: &mut Random) {
        match random.below(3) {
            0 => {
                let user = one_of(random, &USERS);
                self.text += &format!("@user={user}");
                self.user = Some(user);
            }
            1 => {
                self.text += "@version>=2";
                self.least_version = 2;
            }
            _ => {
                let id: i64 = 1 + random.below(20_i64);
                self.text += &format!("@id<={id}");
                self.largest_id = Some(id);
            }
        }
    }

    fn holds(&self, object: &Object) -> bool {
        let is_area = match object.kind {
            Kind::Node => false,
            Kind::Way => object.refs.len() >= 4 && object.refs.first() == object.refs.last(),
            Kind::Relation => object.tags.iter().any(|(key, value)| {
                key == "type" && (value == "multipolygon" || value == "boundary")
            }),
        };
        let has_tag = match &self.key {
            None => true,
            Some(keys) => object.tags.iter().any(|(key, value)| {
                let is_value = self.value.is_none_or(|wanted| wanted == value);
                keys.has(key) && is_value != self.is_negated
            }),
        };
        let user = object.user.as_deref();
        self.kinds.contains(&object.kind)
            && (is_area || !self.is_area)
            && has_tag
            && self
                .without
                .is_none_or(|key| object.tags.iter().all(|(one, _)| one != key))
            && self.largest_id.is_none_or(|largest| object.id <= largest)
            && self.user.is_none_or(|wanted| user == Some(wanted))
            && (self.least_version == 0 || object.version >= Some(self.least_version))
    }
}

impl Rule {
    /// A random rule.
    pub fn random(random: &mut Random) -> Self {
        let [one, other] = {
            let one = random.below(KEYS.len());
            let step = 1 + random.below(KEYS.len() - 1);
            [one, (one + step) % KEYS.len()].map(|index| KEYS[index])
        };
        let value = one_of(random, &VALUES);
        let (text, action) = match random.below(9) {
            0 | 1 => {
                let keys = Keys::random(random);
                (format!("drop {}", keys.0.join(",")), Action::Drop(keys))
            }
            2 => {
                let keys = Keys::random(random);
                (format!("keep {}", keys.0.join(", ")), Action::Keep(keys))
            }
            3 => (format!("set {one}={value}"), Action::Set(one, value)),
            4 => (
                format!("default {one} = {value}"),
                Action::Default(one, value),
            ),
            5 => {
                let text = format!("rename \"{one}\" \"{other}\"");
                (text, Action::Rename(one, other))
            }
            6 => (
                format!("copy \"{one}\" \"{other}\""),
                Action::Copy(one, other),
            ),
            _ => {
                let keys = Keys::random(random);
                let (regex, by, replaced) = one_of(random, &REPLACEMENTS);
                let text = format!("replace {} ~{regex} {by}", keys.0.join(","));
                (text, Action::Replace(keys, replaced))
            }
        };
        let condition = (random.below(2) == 0).then(|| Condition::random(random));
        let (name, rest) = text.split_once(' ').unwrap();
        let option = match &condition {
            Some(condition) => [
                format!("--{name}-on"),
                format!("{}: {rest}", condition.text),
            ],
            None => [format!("--{name}"), rest.to_owned()],
        };
        let text = match &condition {
            Some(condition) => format!("{}: {text}", condition.text),
            None => text,
        };
        Self {
            text,
            option,
            condition,
            action,
        }
    }

    /// Applies the rule to an object. Returns whether it changes a tag, or the key that would occur twice.
    fn apply(&self, object: &mut Object) -> Result<bool, String> {
        if let Some(condition) = &self.condition
            && !condition.holds(object)
        {
            return Ok(false);
        }
        let before = object.tags.clone();
        let tags = &mut object.tags;
        let value_of = |tags: &[(String, String)], wanted: &str| {
            let mut found = tags.iter().filter(|(key, _)| key == wanted);
            found.next().map(|(_, value)| value.clone())
        };
        match &self.action {
            Action::Drop(keys) => tags.retain(|(key, _)| !keys.has(key)),
            Action::Keep(keys) => tags.retain(|(key, _)| keys.has(key)),
            Action::Set(key, value) => match tags.iter_mut().find(|(one, _)| one == key) {
                Some((_, old)) => *old = (*value).to_owned(),
                None => tags.push(((*key).to_owned(), (*value).to_owned())),
            },
            Action::Default(key, value) => {
                if value_of(tags, key).is_none() {
                    tags.push(((*key).to_owned(), (*value).to_owned()));
                }
            }
            Action::Rename(from, to) => {
                if let Some(value) = value_of(tags, from) {
                    match value_of(tags, to) {
                        Some(other) if other != value => return Err((*to).to_owned()),
                        Some(_) => tags.retain(|(key, _)| key != from),
                        None => {
                            for (key, _) in tags.iter_mut().filter(|(key, _)| key == from) {
                                *key = (*to).to_owned();
                            }
                        }
                    }
                }
            }
            Action::Copy(from, to) => {
                if let Some(value) = value_of(tags, from) {
                    match value_of(tags, to) {
                        Some(other) if other != value => return Err((*to).to_owned()),
                        Some(_) => {}
                        None => tags.push(((*to).to_owned(), value)),
                    }
                }
            }
            Action::Replace(keys, replaced) => tags.retain_mut(|(key, value)| {
                let new = if keys.has(key) {
                    replaced(value)
                } else {
                    value.clone()
                };
                let stays = !new.is_empty() || new == *value;
                *value = new;
                stays
            }),
        }
        Ok(object.tags != before)
    }
}

/// Edited objects, and the number of objects that each rule changed.
type Retagged = (Vec<Object>, Vec<u64>);

/// Applies rules to objects. Returns the edited objects, and the number of objects that each rule changed; or, if a
/// rule would give an object a key twice, the first such object and the key.
pub fn edited(objects: &[Object], rules: &[Rule]) -> Result<Retagged, Box<(Object, String)>> {
    let mut counts = vec![0; rules.len()];
    let mut all = Vec::new();
    for object in objects {
        let mut new = object.clone();
        if object.visible || !object.tags.is_empty() {
            for (rule, count) in rules.iter().zip(&mut counts) {
                let changed = rule
                    .apply(&mut new)
                    .map_err(|key| Box::new((object.clone(), key)))?;
                *count += u64::from(changed);
            }
        }
        all.push(new);
    }
    Ok((all, counts))
}

/// Returns random objects in canonical order, each with tags. Some ways are closed, and some relations are areas.
pub fn objects(random: &mut Random, count: usize) -> Vec<Object> {
    let mut objects = Vec::new();
    for (kind, share) in [(Kind::Node, 5), (Kind::Way, 3), (Kind::Relation, 2)] {
        for id in 1..=(count * share / 10) as i64 {
            let mut object = super::with_metadata(
                Object::new(kind, id),
                1 + random.below(3),
                1_700_000_000 + id,
                1 + random.below(9),
                one_of(random, &USERS),
            );
            match kind {
                Kind::Node => {
                    (object.lat_nano, object.lon_nano) = (id * 1000, id * 2000);
                }
                Kind::Way => {
                    object.refs = (0..random.below(6))
                        .map(|step| 1 + (id + step) % 20)
                        .collect();
                    if random.below(2) == 0 {
                        object.refs.extend(object.refs.first().copied());
                    }
                }
                Kind::Relation => {
                    object.members = vec![(Kind::Way, 1 + id % 9, "source".into())];
                    let kind = one_of(random, &["multipolygon", "boundary", "route"]);
                    object.tags.push(("type".into(), kind.into()));
                }
            }
            for key in KEYS {
                if random.below(4) == 0 {
                    object
                        .tags
                        .push((key.into(), one_of(random, &VALUES).into()));
                }
            }
            objects.push(object);
        }
    }
    objects
}
