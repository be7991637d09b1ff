//! Names that are no two the same: one that comes again gets a number.

use rustc_hash::FxHashMap;

/// The names that were given out.
pub(crate) struct UniqueNames {
    /// Between a name and its number.
    separator: &'static str,
    /// The last number that was tried behind each name.
    last: FxHashMap<String, u64>,
}

impl UniqueNames {
    pub(crate) fn new(separator: &'static str) -> Self {
        Self { separator, last: FxHashMap::default() }
    }

    /// The name, or the first of `name#2`, `name#3`, ... that is free. Numbers are tried once for each name, so that all
    /// names together cost no more than their bytes.
    pub(crate) fn make_unique(&mut self, name: &str) -> String {
        let Some(&(mut number)) = self.last.get(name) else {
            self.last.insert(name.to_owned(), 1);
            return name.to_owned();
        };
        let new = loop {
            number += 1;
            let tried = format!("{name}{}{number}", self.separator);
            if !self.last.contains_key(&tried) {
                break tried;
            }
        };
        if let Some(last) = self.last.get_mut(name) {
            *last = number;
        }
        self.last.insert(new.clone(), 1);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many comparisons as pairs would take hours.
    #[test]
    fn equal_names_cost_no_more_than_others() {
        const COUNT: usize = 200_000;
        let mut names = UniqueNames::new("#");
        let taken = (2..=COUNT).map(|number| format!("x#{number}"));
        taken.for_each(|name| assert_eq!(names.make_unique(&name), name));
        let last = (0..COUNT).map(|_| names.make_unique("x")).last();
        assert_eq!(last, Some(format!("x#{}", 2 * COUNT - 1)));
    }
}
