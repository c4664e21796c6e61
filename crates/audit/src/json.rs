//! JSON objects as the pairs they are written in, so that a key that stands twice is seen.

use crate::facts::quoted;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// An object's keys and values, in their order.
pub(crate) struct Pairs<T>(pub(crate) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData)).map(Self)
    }
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

impl<T> Pairs<T> {
    /// The values of exactly these keys, in the order of the keys: each stands once, and no other beside them.
    ///
    /// # Errors
    /// What is wrong with the keys.
    pub(crate) fn only(self, keys: &[&str]) -> Result<Vec<T>, String> {
        let mut found: Vec<Option<T>> = keys.iter().map(|_| None).collect();
        for (key, value) in self.0 {
            let place = keys.iter().position(|known| *known == key);
            let Some(slot) = place.and_then(|place| found.get_mut(place)) else {
                return Err(format!("the unknown key {}", quoted(&key)));
            };
            if slot.replace(value).is_some() {
                return Err(format!("the key `{key}` twice"));
            }
        }
        let value = |(value, key): (Option<T>, &&str)| value.ok_or_else(|| format!("no key `{key}`"));
        found.into_iter().zip(keys).map(value).collect()
    }
}
