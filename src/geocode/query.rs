//! Reverse geocoding: composing the answer about a place.

use super::answer::{
    Answer, NamedArea, NearAddress, NearObject, NearPlace, NearRoad, NearStreet, Nearest,
};
use super::area::Area;
use super::compose::{Parts, label};
use super::index::{Found, GeocodeIndex};
use super::interpolation::interpolated;
use super::item::{Shape, tag};
use super::layout::Layer;
use super::leaf::LeafItem;
use crate::error::{FormatError, Result};
use crate::geometry::{Extent, Point};
use crate::osm::{Location, ObjectKind};

/// The distance in metres within which a node of a kind of place says where something is.
const PLACES: [(&str, f64); 6] = [
    ("city", 15_000.0),
    ("town", 8_000.0),
    ("village", 4_000.0),
    ("suburb", 2_000.0),
    ("hamlet", 1_500.0),
    ("isolated_dwelling", 1_000.0),
];

/// Options of a query.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// The languages of names, the best first: `de`, `en`. Names without language follow.
    pub languages: Vec<String>,
    /// Whether objects have boxes in the answer.
    pub has_boxes: bool,
}

/// The tags of an object.
type TagList<'i> = Vec<(&'i str, &'i str)>;

impl QueryOptions {
    /// The name of an object in the best language that it has.
    fn name<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        let in_language = |language: &String| {
            let name = tags.iter().find(|(key, _)| {
                let of = key.strip_prefix("name:");
                of == Some(language.as_str())
            });
            name.map(|(_, name)| *name)
        };
        let mut languages = self.languages.iter();
        languages
            .find_map(in_language)
            .or_else(|| tag(tags, "name"))
    }

    /// The name of an area in the best language that it has.
    pub(super) fn area_name<'i>(&self, area: &Area<'i>) -> Option<&'i str> {
        let mut languages = self.languages.iter();
        let name = languages.find_map(|language| area.name_in(language));
        name.or_else(|| area.tag("name"))
    }
}

/// An object near a place with its tags.
struct Near<'i> {
    found: Found<'i>,
    extent: Option<Extent>,
    tags: TagList<'i>,
}

impl<'i> Near<'i> {
    fn of(index: &'i GeocodeIndex, found: Found<'i>, options: &QueryOptions) -> Result<Self> {
        let damaged = |error| index.damaged(&error);
        Ok(Self {
            extent: match options.has_boxes {
                true => Some(found.item.extent().map_err(damaged)?),
                false => None,
            },
            tags: found.item.tags().map_err(damaged)?,
            found,
        })
    }

    fn distance_m(&self) -> f64 {
        self.found.distance_m()
    }

    fn object(&self) -> NearObject {
        NearObject {
            kind: self.found.item.kind,
            id: self.found.item.id,
            distance_m: self.distance_m(),
            extent: self.extent,
        }
    }

    fn street(&self) -> Option<&'i str> {
        tag(&self.tags, "addr:street")
    }

    fn near_address(&self, house_number: Option<String>) -> NearAddress<'i> {
        NearAddress {
            object: self.object(),
            house_number,
            street: self.street(),
            place: tag(&self.tags, "addr:place"),
        }
    }
}

impl GeocodeIndex {
    /// Says what is at a place.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn reverse(&self, place: Location, options: &QueryOptions) -> Result<Answer<'_>> {
        let query = Query {
            index: self,
            options,
            place: place.into(),
        };
        query.answer(place)
    }
}

struct Query<'i, 'o> {
    index: &'i GeocodeIndex,
    options: &'o QueryOptions,
    place: Point,
}

impl<'i> Query<'i, '_> {
    fn answer(&self, place: Location) -> Result<Answer<'i>> {
        let radius = self.index.manifest().coarse_search_radius;
        let address = self.near(Layer::Addresses, radius, |_| Ok(true))?;
        let street = self.near(Layer::Streets, radius, |_| Ok(true))?;
        let interpolation = self.near(Layer::Interpolations, radius, |_| Ok(true))?;
        let areas = self.areas()?;
        let mut parts = self.compose(address.as_ref(), street.as_ref(), interpolation.as_ref())?;
        parts.add_areas(&areas, self.options);
        let nearest_place = match parts.city {
            Some(_) => None,
            None => self.nearest_place()?,
        };
        if let Some(place) = &nearest_place {
            parts.add_place(place);
        }
        let road = match street {
            Some(_) => None,
            None => self.near(Layer::Roads, radius, |_| Ok(true))?,
        };
        let nearest = Nearest {
            address: address.map(|near| {
                let number = tag(&near.tags, "addr:housenumber");
                near.near_address(number.map(str::to_owned))
            }),
            street: street.and_then(|near| {
                Some(NearStreet {
                    object: near.object(),
                    name: self.options.name(&near.tags)?,
                })
            }),
            road: road.and_then(|near| {
                Some(NearRoad {
                    object: near.object(),
                    highway: tag(&near.tags, "highway")?,
                    reference: tag(&near.tags, "ref"),
                })
            }),
            interpolation: match interpolation {
                Some(near) => Some(near.near_address(self.number_at(&near)?)),
                None => None,
            },
            place: nearest_place,
        };
        let named = areas.iter().filter_map(|area| self.named(area));
        let (address, sources) = parts.finish();
        Ok(Answer {
            query: place,
            label: label(&address, &nearest),
            address,
            sources,
            nearest,
            areas: named.collect(),
        })
    }

    /// The object of a layer that is nearest, among those that `accepts` accepts.
    fn near(
        &self,
        layer: Layer,
        radius: f64,
        accepts: impl Fn(&LeafItem<'i>) -> Result<bool, FormatError>,
    ) -> Result<Option<Near<'i>>> {
        let found = self.index.nearest(layer, self.place, radius, accepts)?;
        let near = |found| Near::of(self.index, found, self.options);
        found.map(near).transpose()
    }

    /// The house number of an interpolation way beside the place.
    fn number_at(&self, near: &Near<'i>) -> Result<Option<String>> {
        let lines = near.found.item.lines();
        let lines = lines.map_err(|error| self.index.damaged(&error))?;
        let line = lines.first().map(Vec::as_slice).unwrap_or_default();
        Ok(interpolated(line, &near.tags, near.found.place))
    }

    /// Composes the part of the address that does not come from areas.
    fn compose(
        &self,
        address: Option<&Near<'i>>,
        street: Option<&Near<'i>>,
        interpolation: Option<&Near<'i>>,
    ) -> Result<Parts<'i>> {
        let radius = self.index.manifest().search_radius;
        let is_near = |near: &&Near<'i>| near.distance_m() <= radius;
        // A number belongs to its street: a nearer street with another name contradicts it.
        let is_of = |name: &str| {
            let mut tags = street.iter().flat_map(|street| &street.tags);
            tags.any(|(key, value)| key.contains("name") && *value == name)
        };
        let contradicts = |near: &Near<'i>| {
            street.is_some_and(|street| {
                let is_other = near.street().is_some_and(|name| !is_of(name));
                street.found.squared < near.found.squared && is_other
            })
        };
        let mut inner = None;
        if let Some(near) = address.filter(is_near) {
            if near.found.squared == 0.0 && near.found.item.shape == Shape::Area {
                inner = self.node_in(&near.found.item)?;
            } else if contradicts(near) {
                inner = self.near(Layer::Addresses, radius, |item| {
                    Ok(item.tag("addr:street")?.is_some_and(is_of))
                })?;
            }
        }
        let chosen = inner.as_ref();
        let chosen = chosen.or(address.filter(is_near).filter(|near| !contradicts(near)));
        let between = interpolation.filter(is_near).filter(|near| {
            let is_nearer = chosen.is_none_or(|chosen| near.found.squared < chosen.found.squared);
            is_nearer && !contradicts(near)
        });
        let mut parts = Parts::default();
        if let Some(near) = between {
            parts.add_address(self.number_at(near)?, &near.tags, near.object());
        } else if let Some(near) = chosen {
            let number = tag(&near.tags, "addr:housenumber").map(str::to_owned);
            parts.add_address(number, &near.tags, near.object());
        }
        if let Some(street) = street
            && let Some(name) = self.options.name(&street.tags)
        {
            parts.add_street(name, street.object());
        }
        Ok(parts)
    }

    /// The nearest node with an address inside of an area.
    fn node_in(&self, area: &LeafItem<'i>) -> Result<Option<Near<'i>>> {
        let lines = area.lines().map_err(|error| self.index.damaged(&error))?;
        let metric = super::metric::Metric::around(self.place);
        let corners = lines.iter().flatten().map(|point| {
            let [x, y] = metric.project(*point);
            x.hypot(y)
        });
        let radius = corners.fold(0.0, f64::max);
        self.near(Layer::Addresses, radius, |item| {
            Ok(item.kind == ObjectKind::Node
                && match item.first_point()? {
                    Some(point) => area.holds(point)?,
                    None => false,
                })
        })
    }

    /// The areas that contain the place: the lowest level first.
    fn areas(&self) -> Result<Vec<Area<'i>>> {
        let mut areas = self.index.areas_at(self.place)?;
        areas.sort_unstable_by_key(|area| (area.level.unwrap_or(u8::MAX), area.kind, area.id));
        Ok(areas)
    }

    fn named(&self, area: &Area<'i>) -> Option<NamedArea<'i>> {
        let name = self
            .options
            .area_name(area)
            .filter(|_| area.is_administrative)?;
        Some(NamedArea {
            object_kind: area.kind,
            id: area.id,
            extent: area.extent,
            admin_level: area.level,
            name,
            kind: "administrative",
        })
    }

    /// The place whose distance is the smallest part of the reach of its kind.
    fn nearest_place(&self) -> Result<Option<NearPlace<'i>>> {
        let farthest = PLACES.iter().map(|(_, reach)| *reach);
        let farthest = farthest.fold(0.0, f64::max);
        // The square of the part, and the place.
        let mut best: Option<(f64, Found<'i>)> = None;
        let index = self.index;
        index.visit_near(Layer::Places, self.place, farthest, |found, limit| {
            let kind = found.item.tag("place")?;
            let Some((_, reach)) = PLACES.iter().find(|(place, _)| Some(*place) == kind) else {
                return Ok(());
            };
            let part = found.squared / (reach * reach);
            let key = |part, found: &Found<'_>| (part, found.key());
            let is_better =
                |(other, best): &(f64, Found<'_>)| key(part, &found) < key(*other, best);
            if part <= 1.0 && best.as_ref().is_none_or(is_better) {
                best = Some((part, found));
                *limit = part * farthest * farthest;
            }
            Ok(())
        })?;
        let Some((_, found)) = best else {
            return Ok(None);
        };
        let near = Near::of(self.index, found, self.options)?;
        let names = tag(&near.tags, "place").zip(self.options.name(&near.tags));
        Ok(names.map(|(place, name)| NearPlace {
            object: near.object(),
            place,
            name,
        }))
    }
}
