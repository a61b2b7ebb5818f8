#!/usr/bin/env python3
"""aiokafka with a user and a token: `client_sasl.py HOST:PORT`; the broker knows the tokens of the test beside this."""

import asyncio
import sys

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError


async def produce(token):
    producer = AIOKafkaProducer(
        bootstrap_servers=sys.argv[1], security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
        sasl_plain_username="city", sasl_plain_password=token, enable_idempotence=True,
    )
    try:
        await producer.start()
        return await producer.send_and_wait("by-sasl", key=b"k", value=b"v")
    finally:
        await producer.stop()


async def main():
    done = await produce("a")
    assert (done.partition, done.offset) == (0, 0), done
    try:
        await produce("b")
        sys.exit("the token of another tenant was let in")
    except KafkaError:
        pass


asyncio.run(main())
