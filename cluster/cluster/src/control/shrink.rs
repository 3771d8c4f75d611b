//! Memory that is given back after many objects went.

use std::collections::HashMap;
use std::hash::Hash;

/// A map with room for this many is not worth making smaller.
const SMALL: usize = 1024;

/// Makes a map smaller of which little is in use.
pub(super) fn shrink<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.capacity() > SMALL && map.len() < map.capacity() / 8 {
        map.shrink_to(2 * map.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_as_large_as_what_is_in_it() {
        let mut map: HashMap<usize, usize> = (0..100_000).map(|key| (key, key)).collect();
        for key in 10..100_000 {
            map.remove(&key);
            shrink(&mut map);
        }
        assert_eq!(map.len(), 10);
        assert!(map.capacity() <= 2 * SMALL, "{}", map.capacity());
    }
}
