//! The targets of the framework over their seeds and findings.

lariat_cluster_fuzz::corpus_tests! {
    lariat_fuzz::TARGETS;
    field_selectors kubeconfig label_selectors list_pages metadata watch_lines
}
