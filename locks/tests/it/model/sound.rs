//! What holds, in every state that these bounds allow. The numbers of states are below what was counted: a
//! change that makes a model smaller has to say why.

use zk_locks::Access::{self, Read, Write};

use super::search::{holds, kinds_of_actions};
use super::{Fault, Lease, LockModel, Recipe};

const EVERY_FAULT: &[Fault] = &[
    Fault::LosesMessage,
    Fault::GivesUp,
    Fault::Crashes,
    Fault::Expires,
    Fault::NodeRemoved,
    Fault::RolledBack,
];

/// Without the outsider, of whom no lease tells.
const LEASE_FAULTS: &[Fault] =
    &[Fault::LosesMessage, Fault::GivesUp, Fault::Crashes, Fault::Expires, Fault::RolledBack];

/// Any of the faults, so many times in one run, and more if asked for:
/// `LOCKSTOCK_MODEL_FAULTS=3 cargo test -p zk-locks --test it model`.
fn faulty(recipe: Recipe, contenders: &[Access]) -> LockModel {
    let faults_max = std::env::var("LOCKSTOCK_MODEL_FAULTS").map_or(2, |faults| faults.parse().unwrap());
    LockModel { faults: EVERY_FAULT, faults_max, ..LockModel::new(recipe, contenders) }
}

#[test]
fn three_contenders_for_a_mutex_and_too_little_stock() {
    let model = LockModel { stock: 2, ..faulty(Recipe::FairMutex, &[Write; 3]) };
    assert!(holds("mutex, 3 contenders", model).unique > 1_500_000);
}

#[test]
fn two_contenders_for_a_mutex_again_and_again() {
    let mut model = LockModel { orders: 2, ..faulty(Recipe::FairMutex, &[Write; 2]) };
    model.faults_max += 1;
    assert!(holds("mutex, 2 contenders, 2 orders each", model).unique > 600_000);
}

#[test]
fn readers_and_writers_each_watching_what_is_in_the_way() {
    for contenders in [[Read, Read, Write], [Read, Write, Write]] {
        let what = format!("fair read/write lock, {contenders:?}");
        assert!(holds(&what, faulty(Recipe::FairReadWrite, &contenders)).unique > 800_000);
    }
}

#[test]
fn readers_and_writers_all_watching_the_directory() {
    for contenders in [[Read, Read, Write], [Read, Write, Write]] {
        let what = format!("broadcast read/write lock, {contenders:?}");
        assert!(holds(&what, faulty(Recipe::BroadcastReadWrite, &contenders)).unique > 600_000);
    }
}

/// With the lease's promise, a holder that is awake is alone until it has been told; whoever was frozen is not.
#[test]
fn a_kept_lease_tells_before_the_next_one_holds() {
    let model =
        LockModel { lease: Lease::Kept, faults: LEASE_FAULTS, ..faulty(Recipe::FairMutex, &[Write; 3]) };
    assert!(holds("mutex, lease kept", model).unique > 900_000);
}

/// With the number of steps in the state no path can come back to where it was: a search that ends has seen that
/// every run ends, and its *eventually* is exact.
#[test]
fn every_run_ends() {
    let faulty = |recipe, contenders| LockModel { faults_max: 1, ..faulty(recipe, contenders) };
    let again = LockModel { orders: 2, ..faulty(Recipe::FairMutex, &[Write; 2]) };
    let leased = LockModel { lease: Lease::Kept, ..faulty(Recipe::FairMutex, &[Write; 2]) };
    for (what, model) in [
        ("mutex", faulty(Recipe::FairMutex, &[Write; 3])),
        ("mutex, 2 orders each", again),
        ("mutex, lease kept", LockModel { faults: LEASE_FAULTS, ..leased }),
        ("fair read/write lock", faulty(Recipe::FairReadWrite, &[Read, Write, Write])),
        ("broadcast read/write lock", faulty(Recipe::BroadcastReadWrite, &[Read, Write, Write])),
    ] {
        holds(&format!("every run ends, {what}"), LockModel { counts_steps: true, ..model });
    }
}

/// None of the actions is there for nothing.
#[test]
fn every_kind_of_action_happens() {
    let two = LockModel { faults_max: 2, ..faulty(Recipe::FairMutex, &[Write; 2]) };
    assert_eq!(kinds_of_actions(&LockModel { lease: Lease::Kept, ..two }), 14);
}
