//! The files of the console's page.
//!
//! They contain no data of the program, so they are served without authentication; the page asks for a token when the
//! API responds with 401. Addresses are relative, so that the page works behind a proxy that adds a prefix.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// The path at which it is served.
    pub(crate) path: &'static str,
    /// The value of `Content-Type`.
    pub(crate) content_type: &'static str,
    /// The content.
    pub(crate) body: &'static str,
}

/// The `Content-Security-Policy` of the page: its own files, and requests to its origin.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! assets {
    ($($path:literal $file:literal $content_type:literal),* $(,)?) => {
        &[$(Asset { path: $path, content_type: $content_type, body: include_str!($file) }),*]
    };
}

/// The files of the page.
pub(crate) const ASSETS: &[Asset] = assets![
    "/" "index.html" "text/html; charset=utf-8",
    "/assets/style.css" "style.css" "text/css; charset=utf-8",
    "/assets/icon.svg" "icon.svg" "image/svg+xml",
    "/assets/actions.js" "actions.js" "text/javascript; charset=utf-8",
    "/assets/address.js" "address.js" "text/javascript; charset=utf-8",
    "/assets/api.js" "api.js" "text/javascript; charset=utf-8",
    "/assets/attention.js" "attention.js" "text/javascript; charset=utf-8",
    "/assets/caches.js" "caches.js" "text/javascript; charset=utf-8",
    "/assets/chart.js" "chart.js" "text/javascript; charset=utf-8",
    "/assets/controller.js" "controller.js" "text/javascript; charset=utf-8",
    "/assets/dom.js" "dom.js" "text/javascript; charset=utf-8",
    "/assets/filter.js" "filter.js" "text/javascript; charset=utf-8",
    "/assets/format.js" "format.js" "text/javascript; charset=utf-8",
    "/assets/frame.js" "frame.js" "text/javascript; charset=utf-8",
    "/assets/key.js" "key.js" "text/javascript; charset=utf-8",
    "/assets/login.js" "login.js" "text/javascript; charset=utf-8",
    "/assets/main.js" "main.js" "text/javascript; charset=utf-8",
    "/assets/overview.js" "overview.js" "text/javascript; charset=utf-8",
    "/assets/parts.js" "parts.js" "text/javascript; charset=utf-8",
    "/assets/search.js" "search.js" "text/javascript; charset=utf-8",
    "/assets/state.js" "state.js" "text/javascript; charset=utf-8",
    "/assets/theme.js" "theme.js" "text/javascript; charset=utf-8",
    "/assets/trace.js" "trace.js" "text/javascript; charset=utf-8",
];

#[cfg(test)]
mod tests {
    use super::{ASSETS, Asset};

    fn scripts() -> impl Iterator<Item = &'static Asset> {
        ASSETS.iter().filter(|asset| asset.path.ends_with(".js"))
    }

    /// Returns the texts between two marks.
    fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
        let parts = text.split(begin).skip(1);
        parts.map(move |part| part.split(end).next().unwrap_or_default())
    }

    #[test]
    fn everything_the_page_loads_is_one_of_its_files() {
        let paths: Vec<&str> = ASSETS.iter().map(|asset| asset.path).collect();
        let html = ASSETS[0].body;
        let loaded =
            between(html, "href=\"assets/", "\"").chain(between(html, "src=\"assets/", "\""));
        let imported = scripts().flat_map(|script| {
            between(script.body, " from './", "'").chain(between(script.body, "import './", "'"))
        });
        let mut count = 0;
        for file in loaded.chain(imported) {
            assert!(
                paths.contains(&format!("/assets/{file}").as_str()),
                "{file}"
            );
            count += 1;
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_nothing_is_inline() {
        for asset in ASSETS
            .iter()
            .filter(|asset| asset.path != "/assets/icon.svg")
        {
            for outside in [
                "http:",
                "https:",
                "url(",
                "@import",
                "//cdn",
                "style=\"",
                "<style",
                "onclick=\"",
            ] {
                // The namespace of SVG is a name, not an address that is loaded.
                let body = asset.body.replace("http://www.w3.org/2000/svg", "");
                assert!(!body.contains(outside), "{}: {outside}", asset.path);
            }
        }
        assert_eq!(ASSETS[0].body.matches("<script").count(), 1);
    }

    #[test]
    fn texts_never_become_markup_or_script() {
        for script in scripts() {
            for unsafe_ in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "Function(",
                "createContextualFragment",
                "DOMParser",
                "srcdoc",
            ] {
                assert!(!script.body.contains(unsafe_), "{}: {unsafe_}", script.path);
            }
        }
    }
}
