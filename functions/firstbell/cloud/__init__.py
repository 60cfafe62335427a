"""AWS: the only folder that imports boto3. What leaves it is one of `firstbell.errors`, or `refusals.Refused`."""
