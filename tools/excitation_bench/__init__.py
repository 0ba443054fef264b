"""What planning an excitation costs, beside sequential quadratic programming with differences over Pinocchio.

The problem: a UR10 in the frames of its URDF, five harmonics in 10 s, at rest at home q = 0 where the motion begins and
ends, |q| <= π, the URDF's velocity limits, |ddq| <= 5 rad/s²; least condition number of the base regressor of the links
(150 samples, 900 x 36, columns not scaled).

Which of dependent columns make up the base regressor is a choice, and the least condition number depends on it much:
with the library's own choice, made for its readers, the same search comes to below 10. Here it is that of a QR
decomposition with column pivoting over 200 random samples, as is usual; first optima from random starts then lie
between 15 and 19, the peer's as ours.
"""
