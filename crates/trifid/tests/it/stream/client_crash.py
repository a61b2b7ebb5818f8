#!/usr/bin/env python3
"""librdkafka under `kill -9`: `client_crash.py HOST:PORT TOPIC` produces until its standard input ends.

Each line that it prints is a number, a partition and an offset: a record that was acknowledged, and where. Any other
line is a failure. The producer is idempotent, and waits for a broker that is gone as long as it takes.
"""

import sys
import threading

from confluent_kafka import Producer

WINDOW = 128

stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()

producer = Producer({
    "bootstrap.servers": sys.argv[1],
    "enable.idempotence": True,
    "batch.num.messages": 8,
    "linger.ms": 1,
    "delivery.timeout.ms": 120000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "socket.timeout.ms": 5000,
    "log_level": 0,
})


def delivered(number):
    def told(error, message):
        if error:
            print("failed", number, error)
        else:
            print(number, message.partition(), message.offset())

    return told


number = 0
while not stop.is_set():
    if len(producer) < WINDOW:
        producer.produce(sys.argv[2], key=str(number % 16), value=f"kafka {number}", on_delivery=delivered(number))
        number += 1
        producer.poll(0)
    else:
        producer.poll(0.02)
left = producer.flush(120)
if left:
    print("unsent", left)
