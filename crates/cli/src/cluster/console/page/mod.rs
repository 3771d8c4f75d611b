//! The files of the page.

use std::iter;

use lariat_http::{PAGE_FILES, PageFile, page_files};

/// Returns the files, which say nothing about the cluster and so need no token; the page is the first.
pub(super) fn files() -> impl Iterator<Item = &'static PageFile> {
    iter::once(&PAGE).chain(OWN).chain(PAGE_FILES)
}

const PAGE: PageFile = PageFile::new("/", include_str!("index.html"));

/// The files that other pages do not have.
const OWN: &[PageFile] = page_files!["cluster.css", "icon.svg", "main.js", "view.js"];

#[cfg(test)]
mod tests {
    use lariat_testing::pages;

    use super::files;

    #[test]
    fn each_link_of_the_page_is_a_page_file() {
        let files: Vec<_> = files().map(|file| (file.path(), file.text())).collect();
        assert_eq!(pages::missing(&files), [""; 0]);
        assert_eq!(pages::unused(&files), [""; 0]);
    }

    #[test]
    fn page_loads_nothing_from_other_origins() {
        for file in files() {
            assert_eq!(
                pages::loaded_from_elsewhere(file.text()),
                [""; 0],
                "{}",
                file.path()
            );
        }
    }

    #[test]
    fn nothing_from_the_cluster_becomes_markup_or_script() {
        for file in files().filter(|file| file.path().ends_with(".js")) {
            assert_eq!(pages::unsafe_parts(file.text()), [""; 0], "{}", file.path());
            for forbidden in ["localStorage", ".style"] {
                assert!(
                    !file.text().contains(forbidden),
                    "{}: {forbidden}",
                    file.path()
                );
            }
        }
    }
}
