//! Finding the address of a query point.

use super::address_tags::{
    NUMBERS, SHARED, has_nonblank_value, house_number, is_address_item, is_same_address,
    is_same_street,
};
use super::folding::StreetNames;
use super::interpolation::interpolated_number;
use super::item::{BROKEN, ItemShape, STREET, nonblank_tag, tag};
use super::layout::Layer;
use super::leaf::LeafItem;
use super::local_projection::LocalProjection;
use super::query::{ChosenAddress, Near, Query};
use crate::error::{Error, Result};
use crate::geometry::Point;
use crate::osm::ObjectKind;

/// The maximum distance in metres between the query point and a node that is preferred to the area around the node. The
/// limit applies if the node and the area have different addresses. The area must then contain several nodes with house
/// numbers.
const BESIDE: f64 = 5.0;
/// The distance in metres within which a query point counts as being at a node. The distance allows for coordinates
/// that are rounded to five decimals.
const AT_NODE: f64 = 1.0;
/// The distance in metres within which a query point counts as being at a house. At a house, the number of the house is
/// preferred to a nearer interpolated number. At a house, a nearer street with another name contradicts the address
/// only if the query point is on the nearer street and not on the street of the house.
const AT_HOUSE: f64 = 6.0;
/// The distance in metres within which a query point counts as being on a street. The distance is the precision of
/// coordinates.
const ON_STREET: f64 = 0.01;

/// Returns the area of the largest ring in square metres.
fn largest_ring_m2(projection: &LocalProjection, rings: &[Vec<Point>]) -> f64 {
    let of_ring = |ring: &Vec<Point>| {
        let corners: Vec<[f64; 2]> = ring
            .iter()
            .map(|corner| projection.project(*corner))
            .collect();
        let pairs = corners.iter().zip(corners.iter().skip(1));
        let doubled: f64 = pairs.map(|([ax, ay], [bx, by])| ax * by - bx * ay).sum();
        doubled.abs() / 2.0
    };
    rings.iter().map(of_ring).fold(0.0, f64::max)
}

impl<'i> Query<'i, '_> {
    /// Returns the address of the query point. The arguments are the nearest address, street and interpolation way.
    pub(super) fn choose_address(
        &self,
        address: Option<&Near<'i>>,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
        interpolation: Option<&Near<'i>>,
    ) -> Result<Option<ChosenAddress<'i>>> {
        match self.address_of_enclosing_area(address)? {
            Some(near) => Ok(Some(ChosenAddress::of(self.address_with_street(near)?))),
            None => self.nearest_consistent_address(address, street, interpolation),
        }
    }

    /// Returns the address of the smallest area that contains the query point. It is the address of the area itself, or
    /// of a node in the area.
    fn address_of_enclosing_area(&self, nearest: Option<&Near<'i>>) -> Result<Option<Near<'i>>> {
        let area = match nearest {
            Some(nearest) if nearest.found.squared == 0.0 => {
                self.smallest_area_around(Layer::Addresses)?
            }
            _ => None,
        };
        let building = self.smallest_area_around(Layer::Buildings)?;
        let is_smaller = |size: f64| area.as_ref().is_none_or(|(other, _)| size < *other);
        if let Some((size, building)) = building
            && is_smaller(size)
            && let Some(node) = self.nearest_numbered_node_in(&building.found.item, None)?
        {
            return Ok(Some(node));
        }
        let Some((_, area)) = area else {
            return Ok(None);
        };
        match self.find_replacement_node(&area)? {
            Some(mut node) => {
                node.add_missing_tags_from(&area.tags);
                Ok(Some(node))
            }
            None => Ok(Some(area)),
        }
    }

    /// Returns the node whose address replaces the address of `area`; `None` if the area keeps its own address. The
    /// query point lies in the area.
    fn find_replacement_node(&self, area: &Near<'i>) -> Result<Option<Near<'i>>> {
        let item = &area.found.item;
        if let Some(node) = self.nearest_numbered_node_in(item, None)? {
            let is_same =
                house_number(&area.tags).is_none() || is_same_address(&node.tags, &area.tags);
            // If the node and the area have different addresses, the node replaces the area if the query point is at
            // the node. Being near the node is enough if the area has further numbered nodes, because the nodes are
            // then separate addresses.
            let distance = node.distance_m();
            let id = Some(node.found.item.id);
            if is_same
                || distance <= AT_NODE
                || distance <= BESIDE && self.nearest_numbered_node_in(item, id)?.is_some()
            {
                return Ok(Some(node));
            }
        }
        self.unnumbered_node_at(area)
    }

    /// Returns the node at the query point, if it lies in the area and is an address without a house number. The node
    /// gets the house number of the area, unless the node and the area name different streets.
    fn unnumbered_node_at(&self, area: &Near<'i>) -> Result<Option<Near<'i>>> {
        let node = self.nearest(Layer::Addresses, AT_NODE, |item| {
            Ok(item.kind == ObjectKind::Node
                && !has_nonblank_value(item, &NUMBERS)?
                && is_address_item(item)?
                && area.found.item.holds(item.first_point()?)?)
        })?;
        let numbered = node.map(|mut node| {
            if is_same_street(&node.tags, &area.tags) {
                let numbers = NUMBERS.map(|key| (key, nonblank_tag(&area.tags, key)));
                let numbers = numbers.into_iter();
                node.tags
                    .extend(numbers.filter_map(|(key, number)| Some((key, number?))));
            }
            node
        });
        Ok(numbered)
    }

    /// Returns the smallest area in a layer that contains the query point, and the size of that area in square metres.
    fn smallest_area_around(&self, layer: Layer) -> Result<Option<(f64, Near<'i>)>> {
        let projection = LocalProjection::around(self.place);
        let mut best: Option<(f64, super::index::Hit<'i>)> = None;
        let index = self.index;
        index.visit_near(layer, self.place, 0.0, |found, _| {
            let is_area = found.squared == 0.0 && found.item.shape == ItemShape::Area;
            if is_area && (layer == Layer::Buildings || is_address_item(&found.item)?) {
                let size = largest_ring_m2(&projection, &found.item.lines()?);
                let key = |size, found: &super::index::Hit<'_>| (size, found.key());
                if best
                    .as_ref()
                    .is_none_or(|(other, best)| key(size, &found) < key(*other, best))
                {
                    best = Some((size, found));
                }
            }
            Ok(())
        })?;
        let near = |(size, found)| Ok((size, Near::of(index, found, self.options)?));
        best.map(near).transpose()
    }

    /// Returns the nearest node with a house number in an area. Ignores the node with the id `but`.
    fn nearest_numbered_node_in(
        &self,
        area: &LeafItem<'i>,
        but: Option<i64>,
    ) -> Result<Option<Near<'i>>> {
        let lines = area
            .lines()
            .map_err(|error| self.index.damage_error(&error))?;
        let projection = LocalProjection::around(self.place);
        let corners = lines.iter().flatten().map(|point| {
            let [x, y] = projection.project(*point);
            x.hypot(y)
        });
        let radius = corners.fold(0.0, f64::max);
        self.nearest(Layer::Addresses, radius, |item| {
            Ok(item.kind == ObjectKind::Node
                && but != Some(item.id)
                && has_nonblank_value(item, &NUMBERS)?
                && area.holds(item.first_point()?)?)
        })
    }

    /// Looks for the node with a house number in `area` that is nearest to the query point. Returns the node if it
    /// completes the address of the area. The query point lies beside the area. A node completes the address if the
    /// area has no number, or if the area and the node have the same number and only the node has a street.
    fn find_completing_node(&self, area: &Near<'i>) -> Result<Option<Near<'i>>> {
        if area.found.item.shape != ItemShape::Area {
            return Ok(None);
        }
        let mut numbers = NUMBERS.iter();
        let has_number = numbers.any(|key| nonblank_tag(&area.tags, key).is_some());
        if has_number && area.street().is_some() {
            return Ok(None);
        }
        let node = self.nearest_numbered_node_in(&area.found.item, None)?;
        let is_more = |node: &Near<'i>| {
            !has_number || node.street().is_some() && is_same_address(&node.tags, &area.tags)
        };
        let node = node.filter(is_more).map(|mut node| {
            node.add_missing_tags_from(&area.tags);
            self.address_with_street(node)
        });
        node.transpose()
    }

    /// Chooses the address for the query point, `address` if possible. If `street` contradicts this address, looks for
    /// the nearest address of that street. Chooses an interpolated address instead if the interpolation way is nearer.
    fn nearest_consistent_address(
        &self,
        address: Option<&Near<'i>>,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
        interpolation: Option<&Near<'i>>,
    ) -> Result<Option<ChosenAddress<'i>>> {
        let radius = self.index.manifest().search_radius;
        let is_near = |near: &&Near<'i>| near.distance_m() <= radius;
        // A street with another name contradicts an address if the street is nearer than the address.
        let is_of_other = |near: &Near<'i>| {
            street.is_some_and(|(street, names)| {
                let is_other = || near.street().is_some_and(|name| !names.has(name));
                street.found.squared < near.found.squared && is_other()
            })
        };
        let is_at = |near: &Near<'i>| near.distance_m() <= AT_HOUSE;
        let is_on_street = || street.is_some_and(|(street, _)| street.distance_m() <= ON_STREET);
        // At the corner of two streets, a house can belong to the farther street. If the query point is at a house, the
        // nearer street therefore contradicts the address only if the query point is on the nearer street and not on
        // the street of the house.
        let contradicts = |near: &Near<'i>| match near.street() {
            Some(own) if is_of_other(near) && is_at(near) => {
                Ok(is_on_street() && !self.is_on_street_named(own, ON_STREET)?)
            }
            _ => Ok::<bool, Error>(is_of_other(near)),
        };
        let near = address.filter(is_near).cloned();
        let near = near
            .map(|near| self.address_with_street(near))
            .transpose()?;
        let near = match near {
            Some(near) if contradicts(&near)? => {
                self.nearest(Layer::Addresses, radius, |item| {
                    let is_of = |name| street.is_some_and(|(_, names)| names.has(name));
                    Ok(item.tag("addr:street")?.is_some_and(is_of) && is_address_item(item)?)
                })?
            }
            near => near,
        };
        let node = near.as_ref().map(|near| self.find_completing_node(near));
        let near = match node.transpose()?.flatten() {
            Some(node) if is_near(&&node) && !contradicts(&node)? => Some(node),
            _ => near,
        };
        let between = interpolation.filter(is_near).filter(|between| {
            // The number of a house is preferred to a nearer interpolated number if the query point is at the house.
            let is_nearer = near.as_ref().is_none_or(|near| {
                between.found.squared < near.found.squared
                    && !(is_at(near) && house_number(&near.tags).is_some())
            });
            is_nearer && !is_of_other(between)
        });
        Ok(match between {
            Some(between) => Some(ChosenAddress {
                number: self.interpolated_number_along(between)?,
                near: self.address_with_street(between.clone())?,
            }),
            None => near.map(ChosenAddress::of),
        })
    }

    /// Returns the interpolated house number at the query point.
    pub(super) fn interpolated_number_along(&self, near: &Near<'i>) -> Result<Option<String>> {
        let lines = near.found.item.lines();
        let lines = lines.map_err(|error| self.index.damage_error(&error))?;
        let line = lines
            .first()
            .ok_or_else(|| self.index.damage_error(&BROKEN))?;
        Ok(interpolated_number(line, &near.tags, near.found.place))
    }

    /// Returns an address with its street, if the street is known. The street comes from the address itself, from its
    /// relation, or from the interpolation way that contains its node.
    fn address_with_street(&self, mut near: Near<'i>) -> Result<Near<'i>> {
        if near.street().is_none() {
            self.add_missing_street(&mut near)?;
        }
        Ok(near)
    }

    /// Adds the street to an address that has none.
    fn add_missing_street(&self, near: &mut Near<'i>) -> Result<()> {
        let radius = self.index.manifest().coarse_search_radius;
        if let Some(way) = tag(&near.tags, STREET).and_then(|way| way.parse::<i64>().ok()) {
            let street = self.nearest(Layer::Streets, radius, |item| {
                Ok(item.kind == ObjectKind::Way && item.id == way)
            })?;
            if let Some(name) = street.and_then(|street| nonblank_tag(&street.tags, "name")) {
                near.tags.retain(|(key, _)| *key != "addr:street");
                near.tags.push(("addr:street", name));
                return Ok(());
            }
        }
        if near.found.item.kind != ObjectKind::Node {
            return Ok(());
        }
        let damaged = |error| self.index.damage_error(&error);
        let point = near.found.item.first_point().map_err(damaged)?;
        let found = self
            .index
            .nearest(Layer::Interpolations, point, 1.0, |item| {
                let is_node = item.lines()?.iter().flatten().any(|node| *node == point);
                Ok(is_node && has_nonblank_value(item, &["addr:street", "addr:place"])?)
            })?;
        if let Some(found) = found {
            near.add_missing_tags_from(&found.item.tags().map_err(damaged)?);
        }
        Ok(())
    }
}

impl<'i> Near<'i> {
    /// Adds the street and the [`SHARED`] tags that this address lacks. They are copied from `others`, the tags of
    /// another address.
    fn add_missing_tags_from(&mut self, others: &[(&'i str, &'i str)]) {
        let has = |near: &Self, key: &str| nonblank_tag(&near.tags, key).is_some();
        if !has(self, "addr:street") && !has(self, "addr:place") {
            let street = ["addr:street", "addr:place"].map(|key| (key, nonblank_tag(others, key)));
            self.tags.extend(
                street
                    .into_iter()
                    .filter_map(|(key, name)| Some((key, name?))),
            );
        }
        for key in SHARED {
            if let Some(value) = nonblank_tag(others, key)
                && !has(self, key)
            {
                self.tags.push((key, value));
            }
        }
    }
}
