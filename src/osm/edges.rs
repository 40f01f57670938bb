//! The edges of a box as named fields.

/// The edges of a box on the earth, in any unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edges<T> {
    /// The western edge.
    pub west: T,
    /// The southern edge.
    pub south: T,
    /// The eastern edge.
    pub east: T,
    /// The northern edge.
    pub north: T,
}

impl<T> Edges<T> {
    /// Converts each edge to another type or unit.
    #[inline(always)]
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> Edges<U> {
        Edges {
            west: convert(self.west),
            south: convert(self.south),
            east: convert(self.east),
            north: convert(self.north),
        }
    }

    /// Returns the edges in the order west, south, east, north, as in GeoJSON.
    pub fn into_array(self) -> [T; 4] {
        [self.west, self.south, self.east, self.north]
    }
}
