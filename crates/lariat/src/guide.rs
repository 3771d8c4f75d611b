//! Guides: pages of the repository's `docs` folder about tasks rather than items.
//!
//! Start with [handlers] and [operators]; read [testing] before the first test and [production] before the first
//! deployment.
//!
//! The sources are `docs/*.md`, which can also be read there or as a book. Links between them have names, which are
//! defined at the end of each page; `guides/links.md`, included before each page here, defines them as paths of this
//! module.

/// Includes a page of `docs`, after the links that are paths in the reference.
macro_rules! guide {
    ($module:ident, $page:literal) => {
        #[doc = include_str!("../guides/links.md")]
        #[doc = include_str!(concat!("../guides/", $page))]
        pub mod $module {}
    };
}

guide!(handlers, "handlers.md");
guide!(caching, "caching.md");
guide!(testing, "testing.md");
guide!(operators, "operators.md");
guide!(webhooks, "webhooks.md");
guide!(high_availability, "high-availability.md");
guide!(promises, "promises.md");
guide!(production, "production.md");
guide!(migrating_from_kube_rs, "migrating-from-kube-rs.md");
guide!(
    migrating_from_controller_runtime,
    "migrating-from-controller-runtime.md"
);
guide!(migrating_from_lasso, "migrating-from-lasso.md");
guide!(migrating_from_kooper, "migrating-from-kooper.md");
guide!(metrics, "metrics.md");
guide!(tracing, "tracing.md");
guide!(simulator, "simulator.md");
guide!(conformance, "conformance.md");
guide!(upgrading, "upgrading.md");
