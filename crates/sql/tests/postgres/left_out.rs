//! Objects with a value that the database refuses.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time;

use crate::stage::{Process, Stage, red};

/// Makes the database refuse rows with the text `poison`, as it refuses values that are too long for an index.
const REFUSE: &str = "
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW::text LIKE '%poison%' THEN RAISE EXCEPTION 'too long' USING ERRCODE = '54000'; END IF;
        RETURN NEW;
    END $$;
    DO $$ BEGIN EXECUTE (
        SELECT 'CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON lariat.' || table_name
            || ' FOR EACH ROW EXECUTE FUNCTION refuse()'
        FROM information_schema.columns WHERE table_schema = 'lariat' AND column_name = 'digest'
    ); END $$";

fn poison() -> Json {
    json!({"color": "poison"})
}

/// Starts a process, and lets the database refuse values from then on.
async fn start(stage: &Stage) -> Process {
    let version = stage.create("one", red()).await;
    let process = stage.start().await;
    assert_eq!(process.names(&version).await, ["one"]);
    stage.server.sql(REFUSE);
    process
}

async fn left_out(process: &Process, count: usize) {
    while process.maps.status().left_out != count {
        time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn refused_row_keeps_no_other_object_of_its_kind_waiting() {
    let stage = Stage::new().await;
    let process = start(&stage).await;
    stage.create("bad", poison()).await;
    let version = stage.create("two", red()).await;
    assert_eq!(process.names(&version).await, ["one", "two"]);
    left_out(&process, 1).await;
    assert!(process.maps.status().last_error.is_none());
    stage.delete("one").await;
    let version = stage.create("three", red()).await;
    assert_eq!(process.names(&version).await, ["three", "two"]);
    stage.delete("bad").await;
    left_out(&process, 0).await;
}

#[tokio::test]
async fn refused_row_of_the_initial_list_is_left_out() {
    let stage = Stage::new().await;
    let process = start(&stage).await;
    process.sql.stop().await;
    stage.create("bad", poison()).await;
    let version = stage.create("two", red()).await;
    let next = stage.start().await;
    assert_eq!(next.names(&version).await, ["one", "two"]);
    left_out(&next, 1).await;
}

#[tokio::test]
async fn object_that_becomes_refused_loses_its_row() {
    let stage = Stage::new().await;
    let process = start(&stage).await;
    stage.patch("one", poison()).await;
    let version = stage.create("two", red()).await;
    // Its earlier state is not shown as the present one.
    assert_eq!(process.names(&version).await, ["two"]);
    left_out(&process, 1).await;
    let version = stage.patch("one", red()).await;
    assert_eq!(process.names(&version).await, ["one", "two"]);
    left_out(&process, 0).await;
}
