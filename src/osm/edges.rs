//! The edges of a box by their names.

/// The edges of a box on the earth, in a unit that its user names.
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
    /// The edges as another type or in another unit.
    #[inline(always)]
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> Edges<U> {
        Edges {
            west: convert(self.west),
            south: convert(self.south),
            east: convert(self.east),
            north: convert(self.north),
        }
    }

    /// West, south, east, north: the order of GeoJSON and of command lines.
    pub fn into_array(self) -> [T; 4] {
        [self.west, self.south, self.east, self.north]
    }
}
