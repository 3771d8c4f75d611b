//! Options of the validation of a Pod's spec.

use crate::validation::labels::SelectorOptions;
use crate::validation::volumes;

/// The strictness of checks of a Pod's spec.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) volumes: volumes::Options,
    /// Whether the Pod only shows one that a node runs by itself.
    pub(super) is_static: bool,
    /// Of the selectors of affinities.
    pub(super) affinity: SelectorOptions,
    /// Whether the selectors of topology spread constraints may be anything.
    pub(super) any_spread_selector: bool,
    /// Whether values that nodes must have may be no values of labels.
    pub(super) any_node_values: bool,
    /// Whether amounts of huge pages may be no whole pages.
    pub(super) any_huge_pages: bool,
    /// Whether a Pod on the host's network may set the network's kernel parameters.
    pub(super) any_sysctls: bool,
    /// Whether labels of volumes may be changed in any known way.
    pub(super) any_selinux_policy: bool,
    /// Whether init containers may be restarted by a change of resources.
    pub(super) any_resize_policy: bool,
}
