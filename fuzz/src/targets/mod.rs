//! The targets of the framework.

mod field_selectors;
mod kubeconfig;
mod label_selectors;
mod list_pages;
mod metadata;
mod watch_lines;

use lariat_cluster_fuzz::Target;

/// All targets of the framework.
pub const TARGETS: &[Target] = &[
    Target {
        name: "field_selectors",
        run: field_selectors::run,
    },
    Target {
        name: "kubeconfig",
        run: kubeconfig::run,
    },
    Target {
        name: "label_selectors",
        run: label_selectors::run,
    },
    Target {
        name: "list_pages",
        run: list_pages::run,
    },
    Target {
        name: "metadata",
        run: metadata::run,
    },
    Target {
        name: "watch_lines",
        run: watch_lines::run,
    },
];
