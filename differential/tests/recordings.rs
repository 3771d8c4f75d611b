//! Sequences that once showed a difference, beside what a genuine server answered.

use std::path::Path;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lariat_cluster::{Cluster, User};
use lariat_differential::known::{KNOWN, Known};
use lariat_differential::recording::{prepare, read};
use lariat_differential::side::Side;

#[tokio::test]
async fn recorded_sequences_are_answered_as_a_genuine_server_does() {
    let user = User::new("admin").uid("admin-uid").group("system:masters");
    let cluster = Cluster::builder()
        .token_of("differential", user)
        .listen()
        .start()
        .await
        .unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig().unwrap()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    let side = Side::new(config).unwrap();
    prepare(&side).await.unwrap();
    let known = Known::read(KNOWN).unwrap();
    let recordings = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")).unwrap();
    assert!(!recordings.is_empty());
    let mut wrong = Vec::new();
    for (number, recording) in recordings.iter().enumerate() {
        let found = recording.check(&side, number).await.unwrap();
        let unknown = found
            .into_iter()
            .filter(|difference| known.name(&difference.class).is_none());
        wrong.extend(
            unknown.map(|difference| format!("recorded as {}: {difference:#?}", recording.class)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
