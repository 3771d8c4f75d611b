//! The preference order of the versions of a group.

use std::cmp::Reverse;

/// Orders versions as Kubernetes prefers them.
///
/// The order is `v2 > v1 > v1beta2 > v1alpha1 > anything else`.
///
/// Source: `k8s.io/apimachinery/pkg/version.CompareKubeAwareVersionStrings`.
pub(super) fn version_order(version: &str) -> (u8, u64, u64, Reverse<String>) {
    // Other names come last, in alphabetical order, hence the reverse for a maximum.
    let other = (0, 0, 0, Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other;
    };
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (major, stage) = rest.split_at(digits);
    let stage = match stage {
        "" => Some((3, 0)),
        stage => [("beta", 2), ("alpha", 1)]
            .iter()
            .find_map(|(name, rank)| Some((*rank, stage.strip_prefix(name)?.parse().ok()?))),
    };
    match (major.parse(), stage) {
        (Ok(major), Some((rank, minor))) => (rank, major, minor, Reverse(String::new())),
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_as_kubernetes_prefers_them() {
        let mut versions = [
            "foo10",
            "v1",
            "v10beta3",
            "v11alpha2",
            "v2",
            "foo1",
            "v3beta1",
            "v12alpha1",
            "v10",
        ];
        versions.sort_by_key(|version| Reverse(version_order(version)));
        let expected = [
            "v10",
            "v2",
            "v1",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
        ];
        assert_eq!(versions, expected);
    }
}
