//! Lists that are borrowed or owned.

use std::ops::Deref;

/// A list that is borrowed or owned; it dereferences to a slice.
///
/// Unlike a `Cow`, it is covariant in `T`, so a list of strings with a long lifetime can be used as a list of strings
/// with a shorter lifetime.
#[derive(Debug, Clone)]
pub enum List<'a, T> {
    /// Borrowed items.
    Borrowed(&'a [T]),
    /// Owned items.
    Owned(Vec<T>),
}

impl<T> List<'_, T> {
    /// A list without items.
    pub const EMPTY: Self = Self::Borrowed(&[]);

    /// Makes the list empty and owned, and returns its vector. The vector keeps its memory if the list was owned
    /// before.
    pub(crate) fn cleared_vec(&mut self) -> &mut Vec<T> {
        loop {
            match self {
                Self::Owned(items) => {
                    items.clear();
                    return items;
                }
                Self::Borrowed(_) => *self = Self::Owned(Vec::new()),
            }
        }
    }
}

impl<T> Deref for List<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(items) => items,
            Self::Owned(items) => items,
        }
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T: PartialEq<U>, U> PartialEq<List<'_, U>> for List<'_, T> {
    fn eq(&self, other: &List<'_, U>) -> bool {
        **self == **other
    }
}

impl<'a, T> From<&'a [T]> for List<'a, T> {
    fn from(items: &'a [T]) -> Self {
        Self::Borrowed(items)
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(items: &'a [T; N]) -> Self {
        Self::Borrowed(items)
    }
}

impl<'a, T> From<&'a Vec<T>> for List<'a, T> {
    fn from(items: &'a Vec<T>) -> Self {
        Self::Borrowed(items)
    }
}

impl<T> From<Vec<T>> for List<'_, T> {
    fn from(items: Vec<T>) -> Self {
        Self::Owned(items)
    }
}

impl<T> FromIterator<T> for List<'_, T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Owned(items.into_iter().collect())
    }
}

impl<'b, T> IntoIterator for &'b List<'_, T> {
    type Item = &'b T;
    type IntoIter = std::slice::Iter<'b, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
