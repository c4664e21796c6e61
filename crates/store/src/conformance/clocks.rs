//! Due work by both clocks (spec/engine.md, Clock): the wall clock's due time and, within one boot, the boot clock's.

use super::Factory;
use super::world::{BOOT, NODE, World, at, instant};
use crate::{DeliveryKey, Endpoint, Reading};
use contract::BootInstant;
use contract::ledger::EndpointState;

/// A delivery that waits until 1000 by both clocks.
async fn waiting(world: &World<'_>) -> Endpoint {
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    world
        .settle(world.ended(&claimed, 20, world.retry_at(1000)))
        .await;
    endpoint
}

/// The wall clock at one time, the boot clock at another.
fn parted(wall: u64, boot: u64) -> Reading {
    Reading {
        wall: at(wall).wall,
        boot: at(boot).boot,
    }
}

async fn is_due(world: &World<'_>, endpoint: &Endpoint, now: Reading) -> bool {
    !world
        .store
        .due(endpoint.key, now, 10, &[])
        .await
        .expect("due")
        .is_empty()
}

/// Not a millisecond early by either clock (I1).
pub async fn both_clocks_must_allow_it(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = waiting(&world).await;
    for (wall, boot, expected) in [
        (999, 999, false),
        (1000, 999, false),
        (999, 1000, false),
        (1000, 1000, true),
        (9999, 999, false),
    ] {
        assert_eq!(
            is_due(&world, &endpoint, parted(wall, boot)).await,
            expected,
            "{wall} {boot}"
        );
    }
}

/// In another boot the wall clock alone remains; in the same boot after a restart both do.
pub async fn a_reboot_leaves_the_wall_clock_alone(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = waiting(&world).await;
    let world = world.crash().await;
    let started = world.store.node_up(NODE, BOOT, at(100)).await.expect("node_up");
    assert!(!started.rebooted);
    assert!(!is_due(&world, &endpoint, parted(1000, 999)).await);
    let world = world.crash().await;
    let now = Reading {
        wall: instant(200),
        boot: BootInstant::from_ms(7),
    };
    let started = world.store.node_up(NODE, "boot-2", now).await.expect("node_up");
    assert!(started.rebooted);
    let after = |ms| Reading {
        wall: instant(ms),
        boot: BootInstant::from_ms(8),
    };
    assert!(!is_due(&world, &endpoint, after(999)).await);
    assert!(is_due(&world, &endpoint, after(1000)).await);
    let due = world
        .store
        .due(endpoint.key, after(1000), 1, &[])
        .await
        .expect("due")
        .remove(0);
    assert_eq!(due.due_boot, None);
}

/// Oldest due first, no more than asked, without those that are excepted, of this endpoint alone.
pub async fn due_is_a_window_oldest_first(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    for ms in [30, 10, 50, 20, 40] {
        world.accept(world.message(ms)).await;
    }
    let other = world.endpoint(EndpointState::Active).await;
    world.accept(world.message(60)).await;
    let times = |due: &[crate::Due]| {
        due.iter()
            .map(|due| due.due_at.since(instant(0)).as_ms())
            .collect::<Vec<_>>()
    };
    let due = world.store.due(endpoint.key, at(45), 3, &[]).await.expect("due");
    assert_eq!(times(&due), [10, 20, 30]);
    let except: Vec<DeliveryKey> = due.iter().map(|due| due.key).collect();
    let rest = world
        .store
        .due(endpoint.key, at(45), 3, &except)
        .await
        .expect("due");
    assert_eq!(times(&rest), [40]);
    assert_eq!(times(&world.due(&endpoint, 1000).await), [10, 20, 30, 40, 50, 60]);
    assert_eq!(times(&world.due(&other, 1000).await), [60]);
}

/// When to look again: the earliest moment at which one more may become due.
pub async fn next_due_says_when_to_look_again(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let next = |now| world.store.next_due(endpoint.key, now);
    assert_eq!(next(at(0)).await.expect("next_due"), None);
    for (ms, due) in [(1, 3000), (2, 2000)] {
        let claimed = world.sending(ms).await;
        world.settle(world.ended(&claimed, 20, world.retry_at(due))).await;
    }
    let (wall, _) = next(at(30)).await.expect("next_due").expect("waits");
    assert_eq!(wall, instant(2000));
    let (wall, _) = next(at(2000)).await.expect("next_due").expect("waits");
    assert_eq!(wall, instant(3000), "behind those that are due");
    assert_eq!(next(at(3000)).await.expect("next_due"), None);
}

/// The wall clock set forward: what the boot clock holds back is found by the boot clock.
pub async fn next_due_goes_by_the_boot_clock_after_a_step(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = waiting(&world).await;
    // An hour forward at boot time 100: due by the wall clock, not by the other.
    let now = parted(3_600_100, 100);
    assert!(!is_due(&world, &endpoint, now.clone()).await);
    let next = world
        .store
        .next_due(endpoint.key, now.clone())
        .await
        .expect("next_due")
        .expect("waits");
    assert_eq!(next, (now.wall, Some(at(1000).boot)));
    // One that was scheduled after the step is due first.
    let claimed = world.sending(3_600_110).await;
    let mut settle = world.ended(&claimed, 3_600_120, world.retry_at(0));
    settle.next = crate::Next::Retry {
        due_at: instant(3_600_300),
        due_boot: at(300).boot,
        wait: contract::Duration::from_ms(180),
        retry: world.contract,
    };
    world.settle(settle).await;
    let (wall, boot) = world
        .store
        .next_due(endpoint.key, parted(3_600_120, 120))
        .await
        .expect("next_due")
        .expect("waits");
    assert_eq!(wall, instant(3_600_300));
    assert!(boot.is_none_or(|boot| boot <= at(301).boot), "never too late");
}
