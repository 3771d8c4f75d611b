//! The targets of the API server over their seeds and findings.

lariat_cluster_fuzz::corpus_tests! {
    lariat_cluster_fuzz::TARGETS;
    apply continue_tokens json_patch json_path merge_patch protobuf rules strategic_patch yaml
}
