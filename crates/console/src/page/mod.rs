//! The files of the console's page.
//!
//! They contain no data of the program, so they are served without authentication; the page asks for a token when the
//! API responds with 401. Addresses are relative, so that the page works behind a proxy that adds a prefix.

use std::iter;

use lariat_http::{PAGE_FILES, PageFile, page_files};

/// Returns the files of the page, itself first.
pub(crate) fn files() -> impl Iterator<Item = &'static PageFile> {
    iter::once(&PAGE).chain(OWN).chain(PAGE_FILES)
}

const PAGE: PageFile = PageFile::new("/", include_str!("index.html"));

/// The files that other pages do not have.
const OWN: &[PageFile] = page_files![
    "console.css",
    "icon.svg",
    "actions.js",
    "address.js",
    "api.js",
    "attention.js",
    "caches.js",
    "controller.js",
    "filter.js",
    "format.js",
    "frame.js",
    "key.js",
    "main.js",
    "overview.js",
    "parts.js",
    "search.js",
    "state.js",
    "theme.js",
    "trace.js"
];

#[cfg(test)]
mod tests {
    use lariat_testing::pages;

    use super::{PAGE, files};

    #[test]
    fn each_link_of_the_page_is_a_page_file() {
        let files: Vec<_> = files().map(|file| (file.path(), file.text())).collect();
        assert_eq!(pages::missing(&files), [""; 0]);
        assert_eq!(pages::unused(&files), [""; 0]);
        assert!(files.len() > 20, "{}", files.len());
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_nothing_is_inline() {
        for file in files() {
            assert_eq!(
                pages::loaded_from_elsewhere(file.text()),
                [""; 0],
                "{}",
                file.path()
            );
        }
        assert_eq!(PAGE.text().matches("<script").count(), 1);
    }

    #[test]
    fn texts_never_become_markup_or_script() {
        for file in files().filter(|file| file.path().ends_with(".js")) {
            assert_eq!(pages::unsafe_parts(file.text()), [""; 0], "{}", file.path());
        }
    }
}
