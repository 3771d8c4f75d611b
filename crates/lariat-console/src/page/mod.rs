//! The page of the console, and what it loads.
//!
//! Nothing in it is about the program it is served from, so it needs no authentication: it asks for a token when the API
//! answers 401. Its addresses are relative, so that it also works behind a proxy that adds a prefix.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// The path that it is served at.
    pub(crate) path: &'static str,
    /// The value of `Content-Type`.
    pub(crate) content_type: &'static str,
    /// The content.
    pub(crate) body: &'static str,
}

/// The `Content-Security-Policy` of the page: its own files, and requests to where it came from.
#[allow(dead_code, reason = "the server of the page follows")]
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! assets {
    ($($path:literal $file:literal $content_type:literal),* $(,)?) => {
        &[$(Asset { path: $path, content_type: $content_type, body: include_str!($file) }),*]
    };
}

/// The files of the page.
#[allow(dead_code, reason = "the server of the page follows")]
pub(crate) const ASSETS: &[Asset] = assets![
    "/" "index.html" "text/html; charset=utf-8",
    "/assets/style.css" "style.css" "text/css; charset=utf-8",
    "/assets/icon.svg" "icon.svg" "image/svg+xml",
    "/assets/main.js" "main.js" "text/javascript; charset=utf-8",
];
