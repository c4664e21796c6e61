//! Looking names up, each name once at a time: the system's resolver takes a thread a look-up and cannot be stopped,
//! so a slow name must not take one for every attempt that wants it.
//!
//! Nothing is kept: a look-up's answer goes to those who wait for it and to nobody else, and each connection judges it
//! for itself.

use crate::connector::Resolver;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

type Answer = Result<Arc<[IpAddr]>, String>;
type Flight = watch::Receiver<Option<Answer>>;

/// Look-ups under way.
#[derive(Clone)]
pub(crate) struct Names {
    resolver: Arc<dyn Resolver>,
    flights: Arc<Mutex<HashMap<String, Flight>>>,
}

impl Names {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self {
            resolver,
            flights: Arc::default(),
        }
    }

    /// All addresses of a name, or why there are none.
    pub(crate) async fn resolve(&self, host: &str) -> Answer {
        let mut flight = self.flight(host);
        let gone = || Err("the look-up came to no end".to_owned());
        match flight.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or_else(gone),
            Err(_) => gone(),
        }
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<String, Flight>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The look-up under way for this name, or a new one. It goes on when those who wait for it give up.
    fn flight(&self, host: &str) -> Flight {
        let mut flights = self.flights();
        if let Some(flight) = flights.get(host) {
            return flight.clone();
        }
        let (done, flight) = watch::channel(None);
        flights.insert(host.to_owned(), flight.clone());
        let (names, host) = (self.clone(), host.to_owned());
        tokio::spawn(async move {
            let landing = Landing { names, host };
            let found = landing.names.resolver.resolve(&landing.host).await;
            // From here on a new connection looks the name up again.
            drop(landing);
            let answer = found.map(Arc::from).map_err(|error| error.to_string());
            done.send_replace(Some(answer));
        });
        flight
    }
}

/// Takes the look-up out, however it ends.
struct Landing {
    names: Names,
    host: String,
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.names.flights().remove(&self.host);
    }
}
