"""Hypothesis generators of every message that reaches a broker of a SCOT."""

from __future__ import annotations

from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as plain
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.brokers.scot.overlay.labels import (
    MAX_CLUSTERS,
    BrokerLabel,
    ClusterBitVector,
)
from support.broker_messages import asked, ids, names, numbers, values
from support.filter_strategies import filters

clusters = st.integers(0, MAX_CLUSTERS - 1)
vectors = st.builds(ClusterBitVector, st.integers(0, (1 << MAX_CLUSTERS) - 1))
places = st.builds(BrokerLabel, names, clusters)
labels = st.lists(names, max_size=3).map(tuple)
wanted = filters(most=3)

subscription = st.builds(m.Subscription, ids, wanted, vectors)
notification = st.builds(m.Notification, ids, values, vectors)
promised = st.builds(m.Promised, names, names, ids, wanted)
unacknowledged = st.builds(m.UnacknowledgedDelivery, names, notification, labels)
all_promised = st.lists(promised, max_size=2).map(tuple)
all_owed = st.lists(unacknowledged, max_size=2).map(tuple)
tracked = st.one_of(
    subscription,
    st.builds(m.Unsubscription, ids),
    notification,
    st.builds(m.Detour, notification, clusters),
    st.builds(m.Bypass, notification, clusters, names, names),
    st.builds(
        m.Relay,
        subscription | st.builds(m.Unsubscription, ids),
        places,
        st.lists(places, max_size=3).map(tuple),
    ),
    st.builds(m.ProxyNotification, notification, clusters),
    promised,
    st.builds(m.TakenBack, names, names),
    unacknowledged,
    st.builds(m.Taken, names, st.lists(ids, max_size=3).map(tuple)),
    st.builds(m.ClientLeft, names),
    st.builds(m.HandBack, names, st.lists(ids, max_size=3).map(tuple), all_promised, all_owed),
)
between_brokers = st.one_of(
    tracked,
    st.builds(
        m.Synchronise,
        st.lists(subscription, max_size=3).map(tuple),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(m.Numbered, numbers, tracked),
    st.builds(m.Acknowledge, numbers, st.booleans()),
    st.builds(m.Replica, all_promised, all_owed),
    st.just(m.NoBackup()),
    st.builds(m.InputQueue, numbers, numbers, numbers),
    st.builds(m.BidSubscription, ids, wanted),
    st.builds(m.BidUnsubscription, ids),
    st.builds(m.BidNotification, ids, values, labels),
)
waiting = st.builds(m.InputQueue, numbers, numbers, numbers)
queue = st.builds(m.QueueReport, names, numbers, numbers, numbers)
messages = st.one_of(
    between_brokers,
    st.builds(plain.Attach, asked, asked),
    st.just(plain.Detach()),
    st.builds(plain.Subscribe, names, wanted),
    st.builds(plain.Publish, values),
    st.builds(plain.ClientAcknowledge, st.lists(ids, max_size=3).map(tuple)),
    st.builds(m.NeighbourUp, names, places, st.booleans()),
    st.builds(m.NeighbourAnnounced, names, places, st.booleans(), st.booleans()),
    st.builds(plain.NeighbourDown, names),
    st.just(m.WaitedEnough()),
    st.builds(m.OverlayGrown, numbers, st.lists(names, max_size=3).map(tuple)),
    st.builds(plain.NeighbourGone, names),
    st.just(plain.Restarted()),
    st.builds(m.WindowEnded, st.lists(queue, max_size=3).map(tuple), st.none() | waiting),
)
