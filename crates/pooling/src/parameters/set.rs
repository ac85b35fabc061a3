//! One set of values.

use super::MAX_FURTHER;
use std::sync::Arc;

/// Values of reported parameters, and of further ones that have been set and that no server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tracked {
    /// By index; `None` where a server has never reported one. The last one is never `None`.
    values: Box<[Option<Arc<str>>]>,
    /// In order of their names, which are lower case. At most [`MAX_FURTHER`].
    further: Box<[(Box<str>, Arc<str>)]>,
}

impl Tracked {
    /// The value of a reported parameter.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<&Arc<str>> {
        self.values.get(index).and_then(Option::as_ref)
    }

    /// All values of reported parameters, with their index.
    pub fn values(&self) -> impl Iterator<Item = (usize, &Arc<str>)> {
        self.values.iter().enumerate().filter_map(|(index, value)| Some((index, value.as_ref()?)))
    }

    /// The value of a further parameter.
    #[must_use]
    pub fn further_value(&self, name: &str) -> Option<&Arc<str>> {
        if self.further.is_empty() {
            return None;
        }
        self.further.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All further parameters.
    pub fn further(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.further.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn set(&mut self, index: usize, value: Option<Arc<str>>) {
        let mut values = std::mem::take(&mut self.values).into_vec();
        if values.len() <= index {
            values.resize(index + 1, None);
        }
        values[index] = value;
        while let Some(None) = values.last() {
            values.pop();
        }
        self.values = values.into_boxed_slice();
    }

    /// Beyond the limit it is not kept.
    pub(super) fn set_further(&mut self, name: &str, value: Arc<str>) {
        let mut further = std::mem::take(&mut self.further).into_vec();
        match further.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(at) => further[at].1 = value,
            Err(at) if further.len() < MAX_FURTHER => further.insert(at, (name.into(), value)),
            Err(_) => {}
        }
        self.further = further.into_boxed_slice();
    }

    pub(super) fn remove_further(&mut self, name: &str) {
        if self.further_value(name).is_some() {
            let mut further = std::mem::take(&mut self.further).into_vec();
            further.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            self.further = further.into_boxed_slice();
        }
    }

    pub(super) fn without_further(&self) -> Self {
        Self { values: self.values.clone(), further: Box::default() }
    }
}
