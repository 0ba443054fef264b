"""Tests that run on any bench of joint boards, emulated or real: `./run hil --bench NAME`."""
