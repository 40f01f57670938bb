//! The steps that change the tags of an object.

use super::counts::{EditCounts, RuleCount};
use super::edited_tags::EditedTags;
use super::table::TagTable;
use crate::engine::block_matcher::{is_area, selects};
use crate::error::{FormatError, FormatResult};
use crate::index::IdSets;
use crate::osm::{ObjectId, ObjectKind, TagAction, TagRule};
use crate::pbf::{BlobEntry, Info, Object, ObjectBody};

/// A step that changes tags.
#[derive(Debug, Clone)]
pub(crate) enum EditStep {
    /// Gives these objects a tag.
    Set {
        objects: IdSets,
        key: String,
        value: String,
    },
    /// Applies a rule.
    Rule(TagRule),
    /// Sets and removes the tags that a table lists.
    Table(TagTable),
}

/// Changes the tags of objects, step by step. The new tags of an object depend on this object alone.
#[derive(Debug, Default)]
pub(crate) struct TagEditor {
    /// The steps with their names.
    steps: Vec<(String, EditStep)>,
}

/// An object whose tags are changed.
pub(super) struct EditedObject<'o> {
    pub id: ObjectId,
    /// Whether the object is an area, or a relation that may be one.
    pub is_closed: bool,
    pub info: Info<'o>,
}

impl TagEditor {
    /// Creates an editor that applies rules.
    pub(crate) fn of_rules(rules: &[TagRule]) -> Self {
        let mut editor = Self::default();
        for rule in rules {
            editor.push(rule.to_string(), EditStep::Rule(rule.clone()));
        }
        editor
    }

    /// Adds a step. The name stands for it in reports.
    pub(crate) fn push(&mut self, name: String, step: EditStep) {
        self.steps.push((name, step));
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &EditStep> {
        self.steps.iter().map(|(_, step)| step)
    }

    /// Returns the name and the effect of each step, even if the step is not a rule.
    pub(crate) fn rule_counts(&self, counts: &EditCounts) -> Vec<RuleCount> {
        counts.rule_counts(self.steps.iter().map(|(name, _)| name.as_str()))
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &TagRule> {
        self.steps().filter_map(|step| match step {
            EditStep::Rule(rule) => Some(rule),
            EditStep::Set { .. } | EditStep::Table(_) => None,
        })
    }

    /// Whether a rule has a condition on metadata.
    pub(super) fn needs_metadata(&self) -> bool {
        self.rules().any(|rule| rule.filter.needs_metadata())
    }

    /// Whether a rule has an expression for areas.
    pub(super) fn needs_areas(&self) -> bool {
        let mut expressions = self.rules().flat_map(|rule| rule.filter.expressions());
        expressions.any(|one| one.areas)
    }

    /// Whether a step names objects by their ids.
    pub(super) fn has_ids(&self) -> bool {
        self.steps().any(|step| !matches!(step, EditStep::Rule(_)))
    }

    /// Whether a step names the object by its id.
    pub(super) fn names_object(&self, object: ObjectId) -> bool {
        self.steps().any(|step| match step {
            EditStep::Set { objects, .. } => objects.contains(object.kind, object.id),
            EditStep::Table(table) => table.tags_of(object).is_some(),
            EditStep::Rule(_) => false,
        })
    }

    /// Whether a step may name an object of a blob by its id.
    pub(super) fn may_name_object_in(&self, entry: &BlobEntry) -> bool {
        self.steps().any(|step| match step {
            EditStep::Set { objects, .. } => {
                entry.first_sort_key().is_none() || objects.may_meet(entry)
            }
            EditStep::Table(table) => table.may_meet(entry),
            EditStep::Rule(_) => false,
        })
    }

    /// Changes the tags of an object, and adds it to `counts`. Returns whether any tag changed. Must not be called for
    /// deleted versions without tags, which stay unchanged. Fails if a rule cannot be applied; the error names the
    /// object.
    pub(super) fn apply<'t>(
        &'t self,
        object: &EditedObject<'_>,
        tags: &mut EditedTags<'t>,
        counts: &mut EditCounts,
    ) -> FormatResult<bool> {
        let mut is_changed = false;
        for (index, (name, step)) in self.steps.iter().enumerate() {
            let changed = match step {
                EditStep::Set {
                    objects,
                    key,
                    value,
                } => objects.contains(object.id.kind, object.id.id) && tags.set(key, value),
                EditStep::Table(table) => table.tags_of(object.id).is_some_and(|row| {
                    let mut changed = false;
                    for (key, value) in row {
                        changed |= match value.as_str() {
                            "" => tags.retain(|one| one != key),
                            value => tags.set(key, value),
                        };
                    }
                    changed
                }),
                EditStep::Rule(rule) if rule_matches(rule, object, tags) => {
                    apply_action(&rule.action, tags).map_err(|cause| {
                        let ObjectId { kind, id } = object.id;
                        FormatError::lacking(format!("{kind} {id}: '{name}': {cause}"), None)
                    })?
                }
                EditStep::Rule(_) => false,
            };
            if changed {
                counts.add(index, object.id);
                is_changed = true;
            }
        }
        counts.objects += u64::from(is_changed);
        Ok(is_changed)
    }

    /// Returns the new tags of an object, and adds the object to `counts`. Returns `None` if the tags do not change. A
    /// deleted version without tags never gets tags. Fails if a rule cannot be applied.
    pub(crate) fn new_tags(
        &self,
        object: &Object<'_>,
        counts: &mut EditCounts,
    ) -> FormatResult<Option<Vec<[String; 2]>>> {
        if object.tags.is_empty() && !object.info.visible {
            return Ok(None);
        }
        let mut tags = EditedTags::of(object.tags.iter().copied());
        let edited = EditedObject {
            id: object.object_id(),
            is_closed: match &object.body {
                ObjectBody::Relation { .. } => true,
                ObjectBody::Way { .. } | ObjectBody::Node { .. } => is_area(object),
            },
            info: object.info,
        };
        let is_changed = self.apply(&edited, &mut tags, counts)?;
        let texts = tags
            .iter()
            .map(|(key, value)| [key, value].map(str::to_owned));
        Ok(is_changed.then(|| texts.collect()))
    }
}

/// Whether the expression of a rule matches the object with these tags.
fn rule_matches(rule: &TagRule, object: &EditedObject<'_>, tags: &EditedTags<'_>) -> bool {
    let is_area = object.is_closed
        && (object.id.kind != ObjectKind::Relation
            || tags
                .iter()
                .any(|(key, value)| key == "type" && matches!(value, "multipolygon" | "boundary")));
    selects(
        &rule.filter,
        (object.id, is_area),
        &object.info,
        tags.iter(),
    )
}

fn apply_action<'t>(action: &'t TagAction, tags: &mut EditedTags<'t>) -> Result<bool, String> {
    Ok(match action {
        TagAction::Drop(keys) => tags.retain(|key| !keys.matches(key)),
        TagAction::Keep(keys) => tags.retain(|key| keys.matches(key)),
        TagAction::Set(key, value) => tags.set(key, value),
        TagAction::Default(key, value) => tags.set_default(key, value),
        TagAction::Rename(from, to) => tags.rename(from, to)?,
        TagAction::Copy(from, to) => tags.copy(from, to)?,
        TagAction::Replace {
            keys,
            pattern,
            value,
        } => tags.replace(keys, pattern, value)?,
    })
}
