//! The styles and scripts that the pages of the services share.

/// A file of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageFile {
    /// The path at which it is served.
    pub path: &'static str,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub text: &'static str,
}

/// The `Content-Security-Policy` of a page: its own files, and requests to its origin.
pub const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files that pages share, under `/assets/`.
pub const PAGE_FILES: &[PageFile] = &[
    PageFile {
        path: "/assets/style.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("style.css"),
    },
    PageFile {
        path: "/assets/dom.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("dom.js"),
    },
    PageFile {
        path: "/assets/chart.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("chart.js"),
    },
];
