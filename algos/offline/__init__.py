"""Offline reinforcement learning: policies out of logs."""

from tetrathlon.algos.offline.awac import AWAC
from tetrathlon.algos.offline.awr import AWR
from tetrathlon.algos.offline.cql import CQL
from tetrathlon.algos.offline.iql import IQL
from tetrathlon.algos.offline.td3_bc import TD3BC, ReBRAC
from tetrathlon.algos.offline.trainer import FromLog, Offline

__all__ = ["AWAC", "AWR", "CQL", "IQL", "TD3BC", "FromLog", "Offline", "ReBRAC"]
