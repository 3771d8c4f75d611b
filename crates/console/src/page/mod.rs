//! The files of the console's page.
//!
//! They contain no data of the program, so they are served without authentication; the page asks for a token when the
//! API responds with 401. Addresses are relative, so that the page works behind a proxy that adds a prefix.

use lariat_http::{PAGE_FILES, PageFile};

macro_rules! assets {
    ($($path:literal $file:literal $content_type:literal),* $(,)?) => {
        &[$(PageFile { path: $path, content_type: $content_type, text: include_str!($file) }),*]
    };
}

/// Returns the files of the page, itself first.
pub(crate) fn files() -> impl Iterator<Item = &'static PageFile> {
    OWN.iter().chain(PAGE_FILES)
}

/// The files that other pages do not have.
const OWN: &[PageFile] = assets![
    "/" "index.html" "text/html; charset=utf-8",
    "/assets/console.css" "console.css" "text/css; charset=utf-8",
    "/assets/icon.svg" "icon.svg" "image/svg+xml",
    "/assets/actions.js" "actions.js" "text/javascript; charset=utf-8",
    "/assets/address.js" "address.js" "text/javascript; charset=utf-8",
    "/assets/api.js" "api.js" "text/javascript; charset=utf-8",
    "/assets/attention.js" "attention.js" "text/javascript; charset=utf-8",
    "/assets/caches.js" "caches.js" "text/javascript; charset=utf-8",
    "/assets/controller.js" "controller.js" "text/javascript; charset=utf-8",
    "/assets/filter.js" "filter.js" "text/javascript; charset=utf-8",
    "/assets/format.js" "format.js" "text/javascript; charset=utf-8",
    "/assets/frame.js" "frame.js" "text/javascript; charset=utf-8",
    "/assets/key.js" "key.js" "text/javascript; charset=utf-8",
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
    use lariat_testing::pages;

    use super::{OWN, files};

    #[test]
    fn everything_the_page_loads_is_one_of_its_files() {
        let files: Vec<_> = files().map(|file| (file.path, file.text)).collect();
        assert_eq!(pages::missing(&files), [""; 0]);
        assert_eq!(pages::unused(&files), [""; 0]);
        assert!(files.len() > 20, "{}", files.len());
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_nothing_is_inline() {
        for file in files() {
            assert_eq!(
                pages::loaded_from_elsewhere(file.text),
                [""; 0],
                "{}",
                file.path
            );
        }
        assert_eq!(OWN[0].text.matches("<script").count(), 1);
    }

    #[test]
    fn texts_never_become_markup_or_script() {
        for file in files().filter(|file| file.path.ends_with(".js")) {
            assert_eq!(pages::unsafe_parts(file.text), [""; 0], "{}", file.path);
        }
    }
}
