"""Kernels whose thresholds no other test reaches."""

import numpy as np
import pytest

from promesse_geo.kernels import record_matching


@pytest.mark.parametrize(("noise", "decimals"), [(0.0, 2), (9e-7, 2), (2e-6, 5), (5e-5, 5)])
def test_float_noise_of_a_coordinate_does_not_count_as_decimals(noise, decimals):
    found = np.empty(1, np.int64)
    record_matching.count_decimals(np.array([4.25 + noise]), np.array([45.5]), 0, 4, 0, 1, found)
    assert found.tolist() == [decimals]
